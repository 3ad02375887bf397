//! `/docs`: the API on one page, made from the OpenAPI document.

use std::fmt::Write as _;

use axum::response::Response;
use http::StatusCode;
use serde_json::Value;

use super::OPENAPI;
use super::html::{self, escaped};

pub(super) async fn index() -> Response {
    html::page(StatusCode::OK, "en", "payonce API", &body(OPENAPI))
}

fn body(document: &str) -> String {
    let document: Value = serde_json::from_str(document).unwrap_or_default();
    let mut out = String::new();
    let _ = write!(out, "<h1>payonce API</h1><p>{}</p>", escaped(document["info"]["description"].as_str().unwrap_or_default()));
    out.push_str("<p>The whole document is at <a href=\"/openapi.json\">/openapi.json</a>. Errors are <code>application/problem+json</code>; each code has a page: <a href=\"/docs/errors\">/docs/errors</a>.</p>");
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
