//! Form encoding as the gateway reads and writes it: bytes in, bytes out, no charset assumed.

/// Parameters in order, decoded once.
pub(super) type Params = Vec<(Vec<u8>, Vec<u8>)>;

/// Decodes `a=b&c=d`. A percent sign that no two hex digits follow stays as it is.
pub(super) fn decode(text: &[u8]) -> Params {
    text.split(|b| *b == b'&')
        .filter(|pair| !pair.is_empty())
        .map(|pair| match pair.iter().position(|b| *b == b'=') {
            Some(at) => (unescape(&pair[..at]), unescape(&pair[at + 1..])),
            None => (unescape(pair), Vec::new()),
        })
        .collect()
}

fn unescape(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        match first {
            b'+' => out.push(b' '),
            b'%' => match (after.first().copied().and_then(hex_digit), after.get(1).copied().and_then(hex_digit)) {
                (Some(high), Some(low)) => {
                    out.push(high << 4 | low);
                    rest = &after[2..];
                }
                _ => out.push(b'%'),
            },
            other => out.push(*other),
        }
    }
    out
}

const fn hex_digit(byte: u8) -> Option<u8> {
    match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        b'A'..=b'F' => Some(byte - b'A' + 10),
        _ => None,
    }
}

/// Encodes parameters in their order.
pub(super) fn encode(params: &[(Vec<u8>, Vec<u8>)]) -> Vec<u8> {
    let mut out = Vec::new();
    for (name, value) in params {
        if !out.is_empty() {
            out.push(b'&');
        }
        escape(name, &mut out);
        out.push(b'=');
        escape(value, &mut out);
    }
    out
}

fn escape(text: &[u8], out: &mut Vec<u8>) {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    for byte in text {
        match byte {
            b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' | b'-' | b'_' | b'.' | b'*' => out.push(*byte),
            b' ' => out.push(b'+'),
            other => out.extend([b'%', HEX[usize::from(other >> 4)], HEX[usize::from(other & 15)]]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decoding_undoes_encoding_for_every_byte_and_happens_once() {
        let every: Vec<u8> = (0..=255).collect();
        let params = vec![(b"a b".to_vec(), every), (b"twice".to_vec(), b"%2B+".to_vec()), (b"empty".to_vec(), Vec::new())];
        assert_eq!(decode(&encode(&params)), params);
        assert_eq!(
            decode(b"&x=1%&&y&z=%zz+%4"),
            vec![(b"x".to_vec(), b"1%".to_vec()), (b"y".to_vec(), Vec::new()), (b"z".to_vec(), b"%zz %4".to_vec())]
        );
    }
}
