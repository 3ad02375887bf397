//! Who asks for what: public parameters, signature, charset, and the names of the operations.

use payonce_core::notification::RawRequest;
use serde_json::{Value, json};

use super::{Gateway, answer, fields, form, sign, trade, when};
use crate::books::{Draft, Finish, Recognised, SideReply};
use crate::contract::Operation;

/// The methods that this gateway has.
pub(super) const METHODS: [(&str, Operation); 10] = [
    ("alipay.trade.precreate", Operation::Charge),
    ("alipay.trade.create", Operation::Charge),
    ("alipay.trade.pay", Operation::Charge),
    ("alipay.trade.page.pay", Operation::Charge),
    ("alipay.trade.wap.pay", Operation::Charge),
    ("alipay.trade.app.pay", Operation::Charge),
    ("alipay.trade.query", Operation::Query),
    ("alipay.trade.close", Operation::Close),
    ("alipay.trade.refund", Operation::Refund),
    ("alipay.trade.fastpay.refund.query", Operation::RefundQuery),
];

/// Face-to-face payments are ended by `cancel`.
const CANCEL: &str = "alipay.trade.cancel";

/// Reads and authenticates.
pub(super) fn recognise(side: &Gateway, request: &RawRequest) -> Result<Recognised, SideReply> {
    let (path, query) = request.path_and_query.split_once('?').unwrap_or((&request.path_and_query, ""));
    if let Some(code) = path.strip_prefix("/alipay/qr/").filter(|code| is_code(code)) {
        return page("qr", code, Value::Null);
    }
    if let Some(code) = path.strip_prefix("/alipay/cashier/").filter(|code| is_code(code)) {
        let act = form::decode(&request.body).into_iter().find(|(name, _)| name == b"act").map(|(_, value)| value);
        let act = act.and_then(|act| String::from_utf8(act).ok()).filter(|_| request.method == "POST");
        return page("cashier", code, json!(act));
    }
    if path != "/alipay/gateway.do" || !matches!(request.method.as_str(), "GET" | "POST") {
        return Err(SideReply::new(
            404,
            "text/plain;charset=utf-8",
            "no such page at this Alipay: the gateway is GET or POST /alipay/gateway.do",
        ));
    }
    let mut params = form::decode(query.as_bytes());
    if request.method == "POST" {
        params.extend(form::decode(&request.body));
    }
    gateway(side, &params)
}

fn is_code(code: &str) -> bool {
    !code.is_empty() && code.bytes().all(|b| b.is_ascii_alphanumeric())
}

fn page(route: &str, code: &str, act: Value) -> Result<Recognised, SideReply> {
    Ok(Recognised {
        account: String::new(),
        operation: None,
        channel_ref: None,
        order_ref: None,
        amount: None,
        content: json!({ "route": route, "code": code, "act": act }),
    })
}

fn gateway(side: &Gateway, params: &form::Params) -> Result<Recognised, SideReply> {
    let raw = |name: &str| params.iter().find(|(n, _)| n == name.as_bytes()).map(|(_, value)| value.as_slice()).unwrap_or_default();
    let ascii = |name: &str| std::str::from_utf8(raw(name)).unwrap_or_default().to_owned();
    let (app_id, charset) = (ascii("app_id"), ascii("charset"));
    let method = Some(ascii("method")).filter(|method| operation(method).is_some()).unwrap_or_default();
    let account = side.keys.accounts.iter().find(|account| account.app_id == app_id);
    let name = account.map(|account| account.name).unwrap_or_default();
    let refuse = |code: &str, sub_code: &str, sub_msg: &str| match answer::failure(code, sub_code, sub_msg) {
        Draft::Content(node) => answer::signed(side, name, &method, &charset, &node, Finish::Plain),
        Draft::Ready(reply) => reply,
    };

    for (at, (n, _)) in params.iter().enumerate() {
        if params.iter().skip(at + 1).any(|(other, _)| other == n) {
            return Err(refuse("40002", "isv.invalid-parameter", "参数重复"));
        }
    }
    for (parameter, sub_code) in [
        ("method", "isv.missing-method"),
        ("app_id", "isv.missing-app-id"),
        ("sign_type", "isv.missing-signature-type"),
        ("sign", "isv.missing-signature"),
        ("timestamp", "isv.missing-timestamp"),
        ("version", "isv.missing-version"),
    ] {
        if raw(parameter).is_empty() {
            return Err(refuse("40001", sub_code, &format!("缺少参数 {parameter}")));
        }
    }
    let Some(operation) = operation(&method) else { return Err(refuse("40002", "isv.invalid-method", "不存在的方法名")) };
    let Some(account) = account else { return Err(refuse("40002", "isv.invalid-app-id", "无效的AppID参数")) };
    if ascii("sign_type") != "RSA2" {
        return Err(refuse("40002", "isv.invalid-signature-type", "无效的签名类型"));
    }
    if !sign::request_is_authentic(params, &account.merchant_public_der) {
        return Err(refuse("40002", "isv.invalid-signature", "无效签名"));
    }
    // Only the form is checked: the sandbox's clock may have been moved far from the merchant's.
    if when::parse(&ascii("timestamp")).is_none() {
        return Err(refuse("40002", "isv.invalid-timestamp", "非法的时间戳参数"));
    }
    let Some(encoding) = encoding(&charset) else { return Err(refuse("40002", "isv.invalid-charset", "字符集错误")) };
    let decoded = |name: &str| {
        let (text, _, damaged) = encoding.decode(raw(name));
        if damaged { None } else { Some(text.into_owned()) }
    };
    let biz = match raw("biz_content") {
        b"" => Some(json!({})),
        _ => decoded("biz_content").and_then(|text| serde_json::from_str::<Value>(&text).ok()).filter(Value::is_object),
    };
    let Some(biz) = biz else { return Err(refuse("40002", "isv.invalid-parameter", "biz_content 不是有效的 JSON")) };

    let number = fields::text(&biz, "out_trade_no");
    let refund = fields::text(&biz, "out_request_no").or_else(|| number.clone());
    let is_refund = matches!(operation, Operation::Refund | Operation::RefundQuery);
    let amount = fields::fen(&biz, if is_refund { "refund_amount" } else { "total_amount" }).ok().map(trade::yuan);
    let content = json!({
        "method": method,
        "app_id": app_id,
        "charset": charset,
        "notify_url": decoded("notify_url"),
        "return_url": decoded("return_url"),
        "biz": biz,
    });
    Ok(Recognised {
        account: account.name.to_owned(),
        operation: Some(operation),
        channel_ref: if is_refund { refund } else { number.clone() },
        order_ref: if is_refund { number } else { None },
        amount,
        content,
    })
}

fn operation(method: &str) -> Option<Operation> {
    if method == CANCEL {
        return Some(Operation::Close);
    }
    METHODS.iter().find(|(name, _)| *name == method).map(|(_, operation)| *operation)
}

/// UTF-8, GBK and GB18030; no word means UTF-8.
fn encoding(charset: &str) -> Option<&'static encoding_rs::Encoding> {
    if charset.is_empty() {
        return Some(encoding_rs::UTF_8);
    }
    let encoding = encoding_rs::Encoding::for_label(charset.as_bytes())?;
    [encoding_rs::UTF_8, encoding_rs::GBK, encoding_rs::GB18030].contains(&encoding).then_some(encoding)
}
