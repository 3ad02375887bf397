//! Members that take no part in the comparison, such as the time of sending.

use std::fmt;

/// Names one member of a JSON body: a JSON pointer (RFC 6901: `/requestHeader/requestTimestamp`, `/lines/0/note`) or, without a slash,
/// a member of the outermost object (`request_time`).
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Exclusion(Vec<String>);

impl Exclusion {
    /// Parses a pointer or a name. `None` for an empty text (which would exclude the whole body) or a stray `~`.
    pub fn parse(text: &str) -> Option<Self> {
        match text.strip_prefix('/') {
            Some(pointer) => pointer.split('/').map(unescape).collect::<Option<Vec<_>>>().map(Self),
            None => (!text.is_empty()).then(|| Self(vec![text.to_owned()])),
        }
    }

    /// The steps from the outermost value to the member.
    pub(super) fn steps(&self) -> &[String] {
        &self.0
    }
}

impl fmt::Debug for Exclusion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "/{}", self.0.join("/"))
    }
}

fn unescape(token: &str) -> Option<String> {
    let mut out = String::with_capacity(token.len());
    let mut chars = token.chars();
    while let Some(next) = chars.next() {
        match next {
            '~' => match chars.next() {
                Some('0') => out.push('~'),
                Some('1') => out.push('/'),
                Some(_) | None => return None,
            },
            plain => out.push(plain),
        }
    }
    Some(out)
}

/// Steps the exclusions `active` into the member or element `name`: whether it is excluded itself, and what is left to look for inside it.
pub(super) fn enter<'a>(active: &[&'a [String]], name: &[u8]) -> (bool, Vec<&'a [String]>) {
    let mut inside = Vec::new();
    let mut excluded = false;
    for steps in active {
        if let [first, rest @ ..] = steps
            && first.as_bytes() == name
        {
            if rest.is_empty() {
                excluded = true;
            } else {
                inside.push(rest);
            }
        }
    }
    (excluded, inside)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pointers_and_names() {
        let steps = |text: &str| Exclusion::parse(text).map(|e| e.0);
        assert_eq!(steps("request_time"), Some(vec!["request_time".to_owned()]));
        assert_eq!(steps("/a/b"), Some(vec!["a".to_owned(), "b".to_owned()]));
        assert_eq!(steps("/a~1b/~0"), Some(vec!["a/b".to_owned(), "~".to_owned()]));
        assert_eq!((steps(""), steps("/a~"), steps("/~2")), (None, None, None));
    }
}
