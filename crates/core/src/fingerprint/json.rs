//! Reads a JSON text and writes its canonical form in one pass.
//!
//! Objects are written with their members sorted by name, arrays in their order, strings unescaped and framed by length, numbers as exact
//! decimals. Every value delimits itself, so the form cannot be read in two ways. A lone surrogate escape is legal JSON without a
//! UTF-8 form; it is kept as the three bytes that no valid UTF-8 has, and so stays distinct from everything else.

use super::{BodyFault, BodyFaultKind, Rules, number, pointer};

/// Appends the canonical form of `body`, which must be one JSON value and nothing else.
pub(super) fn canonical(body: &[u8], rules: &Rules, out: &mut Vec<u8>) -> Result<(), BodyFault> {
    if let Err(fault) = std::str::from_utf8(body) {
        return Err(BodyFault { kind: BodyFaultKind::NotUtf8, at: fault.valid_up_to() });
    }
    let active: Vec<&[String]> = rules.exclude.iter().map(pointer::Exclusion::steps).collect();
    let mut reader = Reader { body, at: 0, depth_left: rules.max_depth };
    reader.skip_space();
    reader.value(&active, out)?;
    reader.skip_space();
    if reader.at < body.len() { Err(reader.fault(BodyFaultKind::NotJson)) } else { Ok(()) }
}

struct Reader<'a> {
    body: &'a [u8],
    at: usize,
    depth_left: usize,
}

/// Where a member stands in the output: its name, and where its value ends.
struct Member {
    name: std::ops::Range<usize>,
    whole: std::ops::Range<usize>,
    at: usize,
}

impl Reader<'_> {
    fn value(&mut self, active: &[&[String]], out: &mut Vec<u8>) -> Result<(), BodyFault> {
        match self.peek() {
            Some(b'{') => self.nested(|reader| reader.object(active, out)),
            Some(b'[') => self.nested(|reader| reader.array(active, out)),
            Some(b'"') => self.string(out),
            Some(b'-' | b'0'..=b'9') => self.number(out),
            Some(b't') => self.word(b"true", b't', out),
            Some(b'f') => self.word(b"false", b'f', out),
            Some(b'n') => self.word(b"null", b'n', out),
            Some(_) | None => Err(self.fault(BodyFaultKind::NotJson)),
        }
    }

    fn nested(&mut self, read: impl FnOnce(&mut Self) -> Result<(), BodyFault>) -> Result<(), BodyFault> {
        self.depth_left = self.depth_left.checked_sub(1).ok_or(self.fault(BodyFaultKind::TooDeep))?;
        read(self)?;
        self.depth_left += 1;
        Ok(())
    }

    fn object(&mut self, active: &[&[String]], out: &mut Vec<u8>) -> Result<(), BodyFault> {
        self.at += 1;
        out.push(b'{');
        let start = out.len();
        let mut members: Vec<Member> = Vec::new();
        let mut excluded: Vec<(Vec<u8>, usize)> = Vec::new();
        self.skip_space();
        if self.take(b'}') {
            out.push(b'}');
            return Ok(());
        }
        loop {
            self.skip_space();
            let at = self.at;
            let member = out.len();
            if self.peek() != Some(b'"') {
                return Err(self.fault(BodyFaultKind::NotJson));
            }
            let name_len = self.string_framed(out)?;
            let name = out.len() - name_len..out.len();
            self.skip_space();
            self.expect(b':')?;
            self.skip_space();
            let (left_out, inside) = match active {
                [] => (false, Vec::new()),
                some => pointer::enter(some, &out[name.clone()]),
            };
            self.value(&inside, out)?;
            if left_out {
                excluded.push((out[name].to_vec(), at));
                out.truncate(member);
            } else {
                members.push(Member { name, whole: member..out.len(), at });
            }
            self.skip_space();
            if self.take(b',') {
                continue;
            }
            self.expect(b'}')?;
            break;
        }
        sort_members(&mut members, &excluded, start, out)?;
        out.push(b'}');
        Ok(())
    }

    fn array(&mut self, active: &[&[String]], out: &mut Vec<u8>) -> Result<(), BodyFault> {
        self.at += 1;
        out.push(b'[');
        self.skip_space();
        if self.take(b']') {
            out.push(b']');
            return Ok(());
        }
        let mut index = 0usize;
        loop {
            self.skip_space();
            let element = out.len();
            let (left_out, inside) = match active {
                [] => (false, Vec::new()),
                some => pointer::enter(some, index.to_string().as_bytes()),
            };
            self.value(&inside, out)?;
            if left_out {
                // Its place stays: the elements behind it keep their index.
                out.truncate(element);
                out.push(b'x');
            }
            index += 1;
            self.skip_space();
            if self.take(b',') {
                continue;
            }
            self.expect(b']')?;
            out.push(b']');
            return Ok(());
        }
    }

    fn number(&mut self, out: &mut Vec<u8>) -> Result<(), BodyFault> {
        let start = self.at;
        self.take(b'-');
        // No leading zeros: 007 is not JSON, and readers differ on what it is.
        if !self.take(b'0') {
            self.digits()?;
        }
        if self.take(b'.') {
            self.digits()?;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.digits()?;
        }
        out.push(b'#');
        number::canonical(&self.body[start..self.at], out).ok_or(BodyFault { kind: BodyFaultKind::NumberOutOfRange, at: start })?;
        out.push(b';');
        Ok(())
    }

    fn digits(&mut self) -> Result<(), BodyFault> {
        let start = self.at;
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        if self.at == start { Err(self.fault(BodyFaultKind::NotJson)) } else { Ok(()) }
    }

    fn word(&mut self, word: &[u8], mark: u8, out: &mut Vec<u8>) -> Result<(), BodyFault> {
        if !self.body[self.at..].starts_with(word) {
            return Err(self.fault(BodyFaultKind::NotJson));
        }
        self.at += word.len();
        out.push(mark);
        Ok(())
    }

    fn string(&mut self, out: &mut Vec<u8>) -> Result<(), BodyFault> {
        self.string_framed(out).map(|_| ())
    }

    /// Writes the string framed by its length, and says how long it is without the frame.
    fn string_framed(&mut self, out: &mut Vec<u8>) -> Result<usize, BodyFault> {
        out.push(b'"');
        let (start, escaped) = self.scan_string()?;
        let raw = &self.body[start..self.at - 1];
        if !escaped {
            super::frame(out, raw);
            return Ok(raw.len());
        }
        let text = unescape(raw, start)?;
        super::frame(out, &text);
        Ok(text.len())
    }

    /// Steps over the string and its quotes: where its content starts, and whether there is an escape in it.
    fn scan_string(&mut self) -> Result<(usize, bool), BodyFault> {
        self.at += 1;
        let start = self.at;
        let mut escaped = false;
        loop {
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok((start, escaped));
                }
                Some(b'\\') => {
                    escaped = true;
                    self.at += 2;
                }
                Some(0x20..) => self.at += 1,
                Some(0..=0x1f) | None => return Err(self.fault(BodyFaultKind::NotJson)),
            }
        }
    }

    fn skip_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn peek(&self) -> Option<u8> {
        self.body.get(self.at).copied()
    }

    fn take(&mut self, byte: u8) -> bool {
        let met = self.peek() == Some(byte);
        self.at += usize::from(met);
        met
    }

    fn expect(&mut self, byte: u8) -> Result<(), BodyFault> {
        if self.take(byte) { Ok(()) } else { Err(self.fault(BodyFaultKind::NotJson)) }
    }

    fn fault(&self, kind: BodyFaultKind) -> BodyFault {
        BodyFault { kind, at: self.at.min(self.body.len()) }
    }
}

/// Puts the members that were written from `start` on into the order of their names, and refuses a name that comes twice.
fn sort_members(members: &mut [Member], excluded: &[(Vec<u8>, usize)], start: usize, out: &mut Vec<u8>) -> Result<(), BodyFault> {
    let sorted_already = members.is_sorted_by(|a, b| out[a.name.clone()] < out[b.name.clone()]);
    if !sorted_already {
        members.sort_by(|a, b| out[a.name.clone()].cmp(&out[b.name.clone()]));
        for pair in members.windows(2) {
            if let [a, b] = pair
                && out[a.name.clone()] == out[b.name.clone()]
            {
                return Err(BodyFault { kind: BodyFaultKind::DuplicateMember, at: b.at });
            }
        }
    }
    for (n, (name, at)) in excluded.iter().enumerate() {
        // An excluded name stands once among the excluded and never among the others, which were left out by the same name.
        if excluded[..n].iter().any(|(earlier, _)| earlier == name) {
            return Err(BodyFault { kind: BodyFaultKind::DuplicateMember, at: *at });
        }
    }
    if !sorted_already {
        let mut sorted = Vec::with_capacity(out.len() - start);
        for member in members.iter() {
            sorted.extend_from_slice(&out[member.whole.clone()]);
        }
        out.truncate(start);
        out.extend_from_slice(&sorted);
    }
    Ok(())
}

/// The content of a string with its escapes resolved. `start` is where it stands in the body.
fn unescape(raw: &[u8], start: usize) -> Result<Vec<u8>, BodyFault> {
    let mut text = Vec::with_capacity(raw.len());
    let mut at = 0;
    while let Some(byte) = raw.get(at) {
        if *byte != b'\\' {
            text.push(*byte);
            at += 1;
            continue;
        }
        let bad = BodyFault { kind: BodyFaultKind::NotJson, at: start + at };
        match raw.get(at + 1) {
            Some(b'u') => {
                let unit = unit(raw, at).ok_or(bad)?;
                at += 6;
                let low = if (0xd800..0xdc00).contains(&unit) { unit_of_pair(raw, at) } else { None };
                match low {
                    Some(low) => {
                        push_code_point(0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00), &mut text);
                        at += 6;
                    }
                    None => push_code_point(unit, &mut text),
                }
            }
            Some(letter) => {
                text.push(simple_escape(*letter).ok_or(bad)?);
                at += 2;
            }
            None => return Err(bad),
        }
    }
    Ok(text)
}

const fn simple_escape(letter: u8) -> Option<u8> {
    match letter {
        b'"' | b'\\' | b'/' => Some(letter),
        b'b' => Some(8),
        b'f' => Some(12),
        b'n' => Some(b'\n'),
        b'r' => Some(b'\r'),
        b't' => Some(b'\t'),
        _ => None,
    }
}

/// The UTF-16 unit of the escape `\uXXXX` at `at`.
fn unit(raw: &[u8], at: usize) -> Option<u32> {
    let digits = raw.get(at + 2..at + 6)?;
    digits.iter().try_fold(0, |unit, digit| Some(unit * 16 + char::from(*digit).to_digit(16)?))
}

/// The second unit of a surrogate pair, if the escape at `at` is one.
fn unit_of_pair(raw: &[u8], at: usize) -> Option<u32> {
    (raw.get(at..at + 2)? == b"\\u").then(|| unit(raw, at)).flatten().filter(|unit| (0xdc00..0xe000).contains(unit))
}

/// UTF-8, and for a lone surrogate the three bytes that the same rule would give.
fn push_code_point(code: u32, text: &mut Vec<u8>) {
    match char::from_u32(code) {
        Some(known) => text.extend_from_slice(known.encode_utf8(&mut [0; 4]).as_bytes()),
        None => {
            let low = |shift: u32| u8::try_from((code >> shift) & 0x3f).unwrap_or_default() | 0x80;
            text.extend_from_slice(&[0xed, low(6), low(0)]);
        }
    }
}
