//! `/docs/errors/{code}`: a page per error code, as `docs/errors/` holds them when the program is built.

use axum::extract::Path;
use axum::response::Response;
use http::StatusCode;

use super::html::{self, escaped};

include!(concat!(env!("OUT_DIR"), "/error_pages.rs"));

pub(super) async fn page(Path(code): Path<String>) -> Response {
    match ERROR_PAGES.iter().find(|(known, _)| *known == code) {
        Some((_, text)) => html::page(StatusCode::OK, "en", &code, &body(text)),
        None => html::page(StatusCode::NOT_FOUND, "en", &code, &body("There is no page for this code.")),
    }
}

/// Every code with the first sentence of its page.
pub(super) async fn index() -> Response {
    html::page(StatusCode::OK, "en", "Error codes", &listed(ERROR_PAGES))
}

fn listed(pages: &[(&str, &str)]) -> String {
    let mut out = String::from("<p><a href=\"/docs\">API</a></p><h1>Error codes</h1><ul>");
    for (code, text) in pages {
        let means = text.split("\n\n").nth(2).unwrap_or_default().trim();
        let means = means.split_once(". ").map_or(means, |(first, _)| first);
        out.push_str(&format!("<li><a href=\"/docs/errors/{code}\"><code>{code}</code></a> {}</li>", inline(means.trim_end_matches('.'))));
    }
    out.push_str("</ul>");
    out
}

/// Headings, lists and paragraphs; everything else stays as it is written.
fn body(markdown: &str) -> String {
    let mut out = String::from("<p><a href=\"/docs\">API</a></p>");
    for block in markdown.split("\n\n") {
        let block = block.trim();
        if let Some(heading) = block.strip_prefix("# ") {
            out.push_str(&format!("<h1>{}</h1>", inline(heading)));
        } else if let Some(heading) = block.strip_prefix("## ") {
            out.push_str(&format!("<h2>{}</h2>", inline(heading)));
        } else if block.starts_with("- ") {
            let items: String = block.split("\n- ").map(|item| format!("<li>{}</li>", inline(item.trim_start_matches("- ")))).collect();
            out.push_str(&format!("<ul>{items}</ul>"));
        } else if !block.is_empty() {
            out.push_str(&format!("<p>{}</p>", inline(block)));
        }
    }
    out
}

/// What stands between backticks is code.
fn inline(text: &str) -> String {
    let parts = text.split('`').enumerate();
    parts.map(|(n, part)| if n % 2 == 1 { format!("<code>{}</code>", escaped(part)) } else { escaped(part) }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_index_leads_to_every_page_with_its_first_sentence() {
        let index = listed(ERROR_PAGES);
        assert_eq!(index.matches("<li>").count(), ERROR_PAGES.len());
        assert!(index.contains("<a href=\"/docs/errors/order_open\"><code>order_open</code></a> The order is open as"), "{index}");
    }

    #[test]
    fn a_page_is_escaped_and_loads_nothing() {
        let page = body("# `order_open`\n\nIs <b> open & `a<b`.\n\n- one\n- two\n");
        assert!(page.contains("<h1><code>order_open</code></h1>"));
        assert!(page.contains("Is &lt;b&gt; open &amp; <code>a&lt;b</code>."));
        assert!(page.contains("<li>one</li><li>two</li>"));
        assert!(!page.contains("src=") && !page.contains("http"));
    }
}
