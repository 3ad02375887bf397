//! Where words go: data to stdout, talk to stderr.
//!
//! In: values and rows. Out: one JSON document per command with `--json`, text for people without. A closed pipe ends quietly.

use std::io::{self, Write as _};

use comfy_table::Table;
use serde_json::Value;

use crate::exit::Fault;

/// Prints data in the form that was asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Printer {
    json: bool,
}

impl Printer {
    /// A printer; with `json` data is one JSON document.
    pub(crate) const fn new(json: bool) -> Self {
        Self { json }
    }

    /// Prints a list: a JSON array, or a table with these headings. `row` gives a line's cells.
    pub(crate) fn list<T>(
        self,
        headings: &[&str],
        items: &[T],
        json: impl Fn(&T) -> Value,
        row: impl Fn(&T) -> Vec<String>,
    ) -> Result<(), Fault> {
        if self.json {
            return self.document(&Value::Array(items.iter().map(json).collect()));
        }
        if items.is_empty() {
            talk("nothing found");
            return Ok(());
        }
        write_out(&format!("{}\n", table(headings, items.iter().map(row))))
    }

    /// Prints one thing: a JSON object, or a line per member.
    pub(crate) fn one(self, value: &Value) -> Result<(), Fault> {
        if self.json {
            return self.document(value);
        }
        let mut lines = Vec::new();
        flatten("", value, &mut lines);
        let width = lines.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
        let text: String = lines.iter().map(|(name, value)| format!("{name:width$}  {value}\n")).collect();
        write_out(&text)
    }

    /// Prints a text for people, or the document that says the same.
    pub(crate) fn either(self, text: &str, json: &Value) -> Result<(), Fault> {
        if self.json { self.document(json) } else { write_out(&format!("{text}\n")) }
    }

    fn document(self, value: &Value) -> Result<(), Fault> {
        // A JSON value always has a text.
        write_out(&format!("{}\n", serde_json::to_string_pretty(value).unwrap_or_default()))
    }
}

/// Rows under headings, without lines around them.
pub(crate) fn table(headings: &[&str], rows: impl Iterator<Item = Vec<String>>) -> String {
    let mut table = Table::new();
    table.load_style(comfy_table::presets::NOTHING);
    table.set_header(headings.iter().copied());
    for row in rows {
        table.add_row(row);
    }
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    table.lines().map(|line| line.trim_end().to_owned()).collect::<Vec<_>>().join("\n")
}

/// Says something to the person at the terminal.
pub(crate) fn talk(text: impl AsRef<str>) {
    // Nobody listens on a closed stderr, and there is nobody else to tell.
    let _ = writeln!(io::stderr().lock(), "{}", text.as_ref());
}

/// Says why a command could not be done, and sets the hint apart.
pub(crate) fn complain(fault: &Fault) {
    talk(format!("error: {fault}"));
    if let Some(hint) = &fault.hint {
        talk(format!("\nhint: {hint}"));
    }
}

fn write_out(text: &str) -> Result<(), Fault> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => Ok(()),
        // `payonce payment list | head` is no fault.
        Err(why) if why.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        Err(why) => Err(Fault::new(format!("cannot write to stdout: {why}"))),
    }
}

/// `a.b[0].c` and its value, a line each; members that say nothing are left out.
fn flatten(at: &str, value: &Value, into: &mut Vec<(String, String)>) {
    let below = |name: &str| if at.is_empty() { name.to_owned() } else { format!("{at}.{name}") };
    match value {
        Value::Null => {}
        Value::Bool(_) | Value::Number(_) => into.push((at.to_owned(), value.to_string())),
        Value::String(text) => into.push((at.to_owned(), text.clone())),
        Value::Array(items) => items.iter().enumerate().for_each(|(n, item)| flatten(&format!("{at}[{n}]"), item, into)),
        Value::Object(members) => members.iter().for_each(|(name, member)| flatten(&below(name), member, into)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_document_becomes_a_line_per_member() {
        let mut lines = Vec::new();
        flatten("", &json!({ "id": "pay_1", "none": null, "attempts": [{ "n": 1 }], "ok": true }), &mut lines);
        let lines: Vec<String> = lines.iter().map(|(name, value)| format!("{name}={value}")).collect();
        assert_eq!(lines, ["attempts[0].n=1", "id=pay_1", "ok=true"]);
    }

    #[test]
    fn a_table_has_no_lines_and_no_spaces_at_the_end() {
        let text = table(&["ID", "STATUS"], [vec!["pay_1".to_owned(), "paid".to_owned()]].into_iter());
        assert_eq!(text, "ID     STATUS\npay_1  paid");
    }
}
