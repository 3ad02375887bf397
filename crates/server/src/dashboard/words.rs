//! The dashboard's words, in English and Chinese.

use http::header::ACCEPT_LANGUAGE;
use http::{HeaderMap, Uri};

/// A language.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lang {
    En,
    Zh,
}

/// Name, English, Chinese.
const WORDS: &[(&str, &str, &str)] = &[
    ("payments", "Payments", "支付"),
    ("inbox", "Notifications", "渠道通知"),
    ("sign_in", "Sign in", "登录"),
    ("sign_out", "Sign out", "退出"),
    ("api_key", "API key", "API 密钥"),
    (
        "sign_in_note",
        "Sign in with an API key of your tenant. The page only shows; it changes nothing.",
        "使用本商户的 API 密钥登录。此页面只读，不会更改任何数据。",
    ),
    ("bad_key", "The key is not known, or it was revoked.", "密钥不存在或已被吊销。"),
    ("order", "Order", "商户订单号"),
    ("payment", "Payment", "支付单"),
    ("amount", "Amount", "金额"),
    ("captured", "Taken", "已收"),
    ("refunded", "Refunded", "已退"),
    ("status", "Status", "状态"),
    ("channel", "Channel", "渠道"),
    ("account", "Account", "账户"),
    ("method", "Method", "支付方式"),
    ("reference", "Channel reference", "渠道参考号"),
    ("txn", "Channel transaction", "渠道交易号"),
    ("created", "Made", "创建时间"),
    ("received", "Received", "接收时间"),
    ("attempts", "Attempts", "支付尝试"),
    ("refunds", "Refunds", "退款"),
    ("refund_id", "Refund number", "商户退款号"),
    ("events", "Events", "事件"),
    ("event", "Event", "事件"),
    ("delivery", "Delivery", "投递"),
    ("timeline", "Timeline", "时间线"),
    ("what", "What", "内容"),
    ("source", "Told by", "来源"),
    ("detail", "Particulars", "详情"),
    ("review", "A person has to look", "需要人工核对"),
    ("failure", "Failure", "失败原因"),
    ("note", "Note", "备注"),
    ("all", "All", "全部"),
    ("older", "Older", "更早"),
    ("nothing", "Nothing here yet.", "暂无数据。"),
    ("no_payment", "There is no such payment.", "没有这笔支付。"),
    ("store_down", "The store cannot be reached. Try again in a moment.", "数据库暂时不可用，请稍后再试。"),
    ("pending", "pending", "待支付"),
    ("authorized", "authorized", "已授权"),
    ("paid", "paid", "已支付"),
    ("closed", "closed", "已关闭"),
    ("failed", "failed", "失败"),
    ("prepared", "prepared", "已准备"),
    ("unknown", "unknown", "结果未知"),
    ("succeeded", "succeeded", "成功"),
    ("declined", "declined", "被拒绝"),
    ("waiting", "waiting", "等待处理"),
    ("settled", "settled", "已处理"),
    ("unmatched", "unmatched", "未匹配"),
    ("foreign", "foreign", "非本系统"),
    ("acknowledged", "acknowledged", "已确认"),
    ("dead", "given up", "已放弃"),
    ("feed_only", "feed only", "仅事件流"),
];

impl Lang {
    /// `?lang=`, else what the browser prefers.
    pub(super) fn of(uri: &Uri, headers: &HeaderMap) -> Self {
        let asked = super::parameter(uri, "lang");
        let preferred = headers.get(ACCEPT_LANGUAGE).and_then(|value| value.to_str().ok()).map(str::to_ascii_lowercase);
        match asked.as_deref() {
            Some("zh") => Self::Zh,
            Some("en") => Self::En,
            _ if preferred.is_some_and(|preferred| preferred.starts_with("zh")) => Self::Zh,
            _ => Self::En,
        }
    }

    /// As the page's language.
    pub(super) const fn code(self) -> &'static str {
        match self {
            Self::En => "en",
            Self::Zh => "zh",
        }
    }

    /// The other one.
    pub(super) const fn other(self) -> (Self, &'static str) {
        match self {
            Self::En => (Self::Zh, "中文"),
            Self::Zh => (Self::En, "English"),
        }
    }

    /// A word by its name; a name without a word stands for itself.
    pub(super) fn say(self, name: &str) -> &str {
        let found = WORDS.iter().find(|(known, ..)| *known == name);
        found.map_or(name, |(_, en, zh)| match self {
            Self::En => en,
            Self::Zh => zh,
        })
    }
}
