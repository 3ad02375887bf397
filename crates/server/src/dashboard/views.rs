//! The dashboard's pages as HTML. Every value is escaped; nothing sealed is opened.

use std::fmt::Write as _;

use payonce_core::event::Event;
use payonce_core::id::TenantId;
use payonce_core::money::Money;
use payonce_core::payment::change::AuditEntry;
use payonce_core::payment::{Payment, PaymentStatus};
use payonce_core::ports::inbox::InboxRow;

use super::words::Lang;
use crate::pages::html::escaped;

pub(super) fn plain(text: &str) -> String {
    format!("<nav><b>payonce</b></nav><p>{}</p>", escaped(text))
}

pub(super) fn told(lang: Lang, tenant: &TenantId, text: &str) -> String {
    format!("{}<p>{}</p>", nav(lang, tenant), escaped(text))
}

pub(super) fn login(lang: Lang, refused: bool) -> String {
    let (other, name) = lang.other();
    let fault = if refused { format!("<p class=\"fault\" role=\"alert\">{}</p>", lang.say("bad_key")) } else { String::new() };
    format!(
        "<nav><b>payonce</b><span class=\"end\"><a href=\"/dashboard?lang={}\">{name}</a></span></nav><h1>{}</h1><p class=\"note\">{}</p>{fault}\
         <form method=\"post\" action=\"/dashboard/login?lang={}\"><p><label>{}<br><input type=\"password\" name=\"api_key\" autocomplete=\"current-password\" required></label></p>\
         <p><button>{}</button></p></form>",
        other.code(),
        lang.say("sign_in"),
        lang.say("sign_in_note"),
        lang.code(),
        lang.say("api_key"),
        lang.say("sign_in"),
    )
}

fn nav(lang: Lang, tenant: &TenantId) -> String {
    let (other, name) = lang.other();
    let code = lang.code();
    format!(
        "<nav><b>payonce</b><a href=\"/dashboard?lang={code}\">{}</a><a href=\"/dashboard/inbox?lang={code}\">{}</a>\
         <span class=\"end note\">{}</span><a href=\"/dashboard?lang={}\">{name}</a>\
         <form method=\"post\" action=\"/dashboard/logout?lang={code}\"><button>{}</button></form></nav>",
        lang.say("payments"),
        lang.say("inbox"),
        escaped(tenant.as_str()),
        other.code(),
        lang.say("sign_out"),
    )
}

pub(super) fn payments(lang: Lang, tenant: &TenantId, chosen: Option<PaymentStatus>, found: &[Payment], more: bool) -> String {
    let code = lang.code();
    let mut out = nav(lang, tenant);
    let _ = write!(out, "<h1>{}</h1><p><a href=\"/dashboard?lang={code}\">{}</a>", lang.say("payments"), lang.say("all"));
    for status in PaymentStatus::ALL {
        let _ = write!(out, " · <a href=\"/dashboard?lang={code}&amp;status={0}\">{1}</a>", status.as_str(), lang.say(status.as_str()));
    }
    out.push_str("</p>");
    if found.is_empty() {
        let _ = write!(out, "<p class=\"note\">{}</p>", lang.say("nothing"));
        return out;
    }
    head(&mut out, lang, &["order", "status", "amount", "refunded", "channel", "created"]);
    for payment in found {
        let (channel, ..) = payment.route().map_or(("", "", ""), |(channel, account, method)| (channel.as_str(), account.as_str(), method));
        let _ = write!(
            out,
            "<tr><td><a href=\"/dashboard/payments/{}?lang={code}\">{}</a></td><td>{}</td><td class=\"num\">{}</td><td class=\"num\">{}</td><td>{}</td><td>{}</td></tr>",
            payment.id,
            escaped(payment.order_id.as_str()),
            status(lang, payment.status.as_str()),
            payment.amount,
            money_or_none(payment.refunded()),
            escaped(channel),
            payment.created_at,
        );
    }
    out.push_str("</table></div>");
    if let Some(last) = found.last().filter(|_| more) {
        let kept = chosen.map_or(String::new(), |status| format!("&amp;status={}", status.as_str()));
        let _ = write!(out, "<p><a href=\"/dashboard?lang={code}{kept}&amp;after={}\">{} →</a></p>", last.id, lang.say("older"));
    }
    out
}

pub(super) fn payment(lang: Lang, tenant: &TenantId, payment: &Payment, timeline: &[AuditEntry], events: &[(Event, String)]) -> String {
    let mut out = nav(lang, tenant);
    let _ = write!(
        out,
        "<h1>{} {}</h1><p><code>{}</code> · {} · {} · {} {} · {} {}</p>",
        lang.say("order"),
        escaped(payment.order_id.as_str()),
        payment.id,
        status(lang, payment.status.as_str()),
        payment.amount,
        lang.say("captured"),
        payment.captured(),
        lang.say("refunded"),
        payment.refunded(),
    );
    if let Some(review) = &payment.review {
        let _ = write!(
            out,
            "<p class=\"fault\">{}: <code>{}</code> {}</p>",
            lang.say("review"),
            escaped(&review.code),
            escaped(&review.detail)
        );
    }
    let _ = write!(out, "<h2>{}</h2>", lang.say("attempts"));
    head(&mut out, lang, &["channel", "method", "status", "amount", "reference", "txn", "failure", "created"]);
    for row in &payment.attempts {
        let failure = row.failure.as_ref().map_or(String::new(), |failure| format!("{}: {}", failure.code, failure.message));
        let cells = [
            escaped(&format!("{} ({})", row.channel, row.account)),
            escaped(&row.method),
            status(lang, row.status.as_str()),
            row.amount.to_string(),
            format!("<code>{}</code>", escaped(row.channel_ref.as_str())),
            escaped(row.channel_txn.as_deref().unwrap_or_default()),
            escaped(&failure),
            row.created_at.to_string(),
        ];
        line(&mut out, &cells);
    }
    out.push_str("</table></div>");
    if !payment.refunds.is_empty() {
        let _ = write!(out, "<h2>{}</h2>", lang.say("refunds"));
        head(&mut out, lang, &["refund_id", "status", "amount", "reference", "failure", "created"]);
        for row in &payment.refunds {
            let failure = row.failure.as_ref().map_or(String::new(), |failure| format!("{}: {}", failure.code, failure.message));
            let cells = [
                escaped(row.refund_id.as_ref().map_or("—", |number| number.as_str())),
                status(lang, row.status.as_str()),
                row.amount.to_string(),
                format!("<code>{}</code>", escaped(row.channel_ref.as_str())),
                escaped(&failure),
                row.created_at.to_string(),
            ];
            line(&mut out, &cells);
        }
        out.push_str("</table></div>");
    }
    let _ = write!(out, "<h2>{}</h2>", lang.say("events"));
    head(&mut out, lang, &["created", "event", "delivery"]);
    for (event, delivery) in events {
        line(&mut out, &[event.created_at.to_string(), format!("<code>{}</code>", event.kind.as_str()), status(lang, delivery)]);
    }
    let _ = write!(out, "</table></div><h2>{}</h2>", lang.say("timeline"));
    head(&mut out, lang, &["created", "what", "source", "detail"]);
    for entry in timeline {
        let source = entry.source.map_or(String::new(), |source| format!("{source:?}").to_lowercase());
        line(
            &mut out,
            &[entry.at.to_string(), escaped(&entry.kind), escaped(&source), format!("<code>{}</code>", escaped(&entry.detail.to_string()))],
        );
    }
    out.push_str("</table></div>");
    out
}

pub(super) fn inbox(lang: Lang, tenant: &TenantId, found: &[InboxRow]) -> String {
    let mut out = nav(lang, tenant);
    let _ = write!(out, "<h1>{}</h1>", lang.say("inbox"));
    if found.is_empty() {
        let _ = write!(out, "<p class=\"note\">{}</p>", lang.say("nothing"));
        return out;
    }
    head(&mut out, lang, &["received", "channel", "status", "what", "payment", "reference", "note"]);
    for row in found {
        let payment = row
            .payment_id
            .as_ref()
            .map_or(String::new(), |id| format!("<a href=\"/dashboard/payments/{id}?lang={}\">{id}</a>", lang.code()));
        let cells = [
            row.received_at.to_string(),
            escaped(&format!("{} ({})", row.channel, row.account)),
            status(lang, row.status.as_str()),
            escaped(&row.notification.status),
            payment,
            escaped(row.notification.channel_ref.as_deref().unwrap_or_default()),
            escaped(row.note.as_deref().unwrap_or_default()),
        ];
        line(&mut out, &cells);
    }
    out.push_str("</table></div>");
    out
}

fn head(out: &mut String, lang: Lang, names: &[&str]) {
    out.push_str("<div class=\"scroll\"><table><tr>");
    for name in names {
        let _ = write!(out, "<th>{}</th>", lang.say(name));
    }
    out.push_str("</tr>");
}

/// A row of cells that are HTML already.
fn line(out: &mut String, cells: &[String]) {
    out.push_str("<tr>");
    for cell in cells {
        let _ = write!(out, "<td>{cell}</td>");
    }
    out.push_str("</tr>");
}

fn status(lang: Lang, name: &str) -> String {
    format!("<span class=\"s s-{}\">{}</span>", escaped(name), escaped(lang.say(name)))
}

fn money_or_none(money: Money) -> String {
    if money.minor == 0 { "—".to_owned() } else { money.to_string() }
}
