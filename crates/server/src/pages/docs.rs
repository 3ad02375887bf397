//! `/docs`: the API on one page, made from the OpenAPI document.

use std::fmt::Write as _;

use axum::response::Html;
use serde_json::Value;

use super::OPENAPI;

pub(super) async fn index() -> Html<String> {
    Html(page(OPENAPI))
}

/// Text as HTML.
pub(super) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

pub(super) const STYLE: &str = "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#1a1a1a}\
h1{font-size:1.6rem}h2{font-size:1.1rem;margin-top:2rem;border-top:1px solid #ddd;padding-top:1rem}\
code,pre{font:14px/1.45 ui-monospace,monospace;background:#f5f5f5;padding:.1rem .3rem;border-radius:3px}pre{padding:.8rem;overflow:auto}\
.m{display:inline-block;min-width:3.2rem;font-weight:600}table{border-collapse:collapse}td,th{text-align:left;padding:.2rem .8rem .2rem 0;vertical-align:top}\
@media(prefers-color-scheme:dark){body{background:#161616;color:#e8e8e8}code,pre{background:#242424}h2{border-color:#333}a{color:#8ab4f8}}";

fn page(document: &str) -> String {
    let document: Value = serde_json::from_str(document).unwrap_or_default();
    let mut out = format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\"><title>payonce API</title><style>{STYLE}</style>"
    );
    let _ = write!(out, "<h1>payonce API</h1><p>{}</p>", escaped(document["info"]["description"].as_str().unwrap_or_default()));
    out.push_str("<p>The whole document is at <a href=\"/openapi.json\">/openapi.json</a>. Errors are <code>application/problem+json</code>; each code has a page under <code>/docs/errors/</code>.</p>");
    for (path, operations) in document["paths"].as_object().into_iter().flatten() {
        for (method, operation) in operations.as_object().into_iter().flatten() {
            let summary = operation["summary"].as_str().unwrap_or_default();
            let description = operation["description"].as_str().unwrap_or_default();
            let _ = write!(
                out,
                "<h2><span class=\"m\">{}</span> <code>{}</code></h2><p><b>{}</b> {}</p>",
                method.to_uppercase(),
                escaped(path),
                escaped(summary),
                escaped(description)
            );
            members(operation, &document, &mut out);
            answers(operation, &mut out);
        }
    }
    out.push_str("</html>");
    out
}

fn members(operation: &Value, document: &Value, out: &mut String) {
    let schema = &operation["requestBody"]["content"]["application/json"]["schema"];
    let named = schema["$ref"].as_str().and_then(|name| document.pointer(name.trim_start_matches('#')));
    let schema = named.unwrap_or(schema);
    let Some(properties) = schema["properties"].as_object() else { return };
    let required: Vec<&str> = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    out.push_str("<table><tr><th>Member<th><th>");
    for (name, property) in properties {
        let needed = if required.contains(&name.as_str()) { "required" } else { "" };
        let _ = write!(
            out,
            "<tr><td><code>{}</code><td>{needed}<td>{}",
            escaped(name),
            escaped(property["description"].as_str().unwrap_or_default())
        );
    }
    out.push_str("</table>");
}

fn answers(operation: &Value, out: &mut String) {
    out.push_str("<table><tr><th>Answer<th>");
    for (status, answer) in operation["responses"].as_object().into_iter().flatten() {
        let _ = write!(out, "<tr><td>{}<td>{}", escaped(status), escaped(answer["description"].as_str().unwrap_or_default()));
    }
    out.push_str("</table>");
}
