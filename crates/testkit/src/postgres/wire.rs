//! As much of PostgreSQL's protocol as a test needs to look at a database from outside: trust log-in and the simple query.
//!
//! What comes in: SQL text. What goes out: rows as text. It is blocking, so that it serves tests with and without a runtime, and
//! it shares no code with the store that it helps to test.

use std::{
    fmt,
    io::{self, Read, Write},
    net::TcpStream,
    time::Duration,
};

use crate::ports;

/// The user that every cluster of the tests is made with.
pub(crate) const USER: &str = "payonce";

/// One statement may take this long.
const ANSWER_DUE: Duration = Duration::from_secs(60);

/// One row, each column as text.
pub type Row = Vec<Option<String>>;

/// Why a statement gave no rows.
#[derive(Debug)]
pub enum QueryError {
    /// The server refused it.
    Refused {
        /// SQLSTATE, five characters.
        code: String,
        /// The server's words.
        message: String,
    },
    /// The server could not be reached, or went away before it had answered.
    Lost(io::Error),
}

impl fmt::Display for QueryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused { code, message } => write!(f, "{message} ({code})"),
            Self::Lost(error) => write!(f, "connection lost: {error}"),
        }
    }
}

impl std::error::Error for QueryError {}

impl From<io::Error> for QueryError {
    fn from(error: io::Error) -> Self {
        Self::Lost(error)
    }
}

/// One connection.
#[derive(Debug)]
pub(crate) struct Session(TcpStream);

impl Session {
    pub(crate) fn open(port: u16, database: &str) -> Result<Self, QueryError> {
        let socket = TcpStream::connect_timeout(&ports::local(port), ANSWER_DUE)?;
        socket.set_read_timeout(Some(ANSWER_DUE))?;
        socket.set_nodelay(true)?;
        let mut session = Self(socket);
        let mut body = 196_608_u32.to_be_bytes().to_vec();
        for text in ["user", USER, "database", database, ""] {
            body.extend(text.as_bytes());
            body.push(0);
        }
        session.send(None, &body)?;
        session.until_ready()?;
        Ok(session)
    }

    pub(crate) fn query(&mut self, sql: &str) -> Result<Vec<Row>, QueryError> {
        let mut body = sql.as_bytes().to_vec();
        body.push(0);
        self.send(Some(b'Q'), &body)?;
        self.until_ready()
    }

    fn send(&mut self, kind: Option<u8>, body: &[u8]) -> io::Result<()> {
        let length = u32::try_from(body.len() + 4).map_err(io::Error::other)?;
        let mut message: Vec<u8> = kind.into_iter().collect();
        message.extend(length.to_be_bytes());
        message.extend(body);
        self.0.write_all(&message)
    }

    /// Reads up to "ready for query", keeping rows and the first refusal.
    fn until_ready(&mut self) -> Result<Vec<Row>, QueryError> {
        let mut rows = Vec::new();
        let mut refusal = None;
        loop {
            let mut head = [0_u8; 5];
            let read = self.0.read_exact(&mut head).and_then(|()| {
                let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize;
                let mut body = vec![0_u8; length.saturating_sub(4)];
                self.0.read_exact(&mut body).map(|()| body)
            });
            let body = match (read, refusal.take()) {
                (Ok(body), earlier) => {
                    refusal = earlier;
                    body
                }
                // A refused log-in is followed by the end of the connection, not by "ready".
                (Err(_), Some(refused)) => return Err(refused),
                (Err(lost), None) => return Err(lost.into()),
            };
            match head[0] {
                b'Z' => return refusal.map_or(Ok(rows), Err),
                b'D' => rows.push(row(&body).ok_or_else(malformed)?),
                b'E' => refusal = refusal.or_else(|| Some(refused(&body))),
                b'R' if body != [0, 0, 0, 0] => {
                    return Err(QueryError::Lost(io::Error::other("the server asks for a password")));
                }
                _ => {}
            }
        }
    }
}

fn malformed() -> QueryError {
    QueryError::Lost(io::ErrorKind::InvalidData.into())
}

fn row(body: &[u8]) -> Option<Row> {
    let (count, mut rest) = body.split_first_chunk::<2>()?;
    (0..u16::from_be_bytes(*count))
        .map(|_| {
            let (length, after) = rest.split_first_chunk::<4>()?;
            let Ok(length) = usize::try_from(i32::from_be_bytes(*length)) else {
                rest = after;
                return Some(None);
            };
            let (text, after) = after.split_at_checked(length)?;
            rest = after;
            Some(Some(String::from_utf8_lossy(text).into_owned()))
        })
        .collect()
}

fn refused(body: &[u8]) -> QueryError {
    let field = |wanted: u8| {
        body.split(|byte| *byte == 0)
            .find_map(|field| field.strip_prefix(&[wanted]))
            .map(|text| String::from_utf8_lossy(text).into_owned())
            .unwrap_or_default()
    };
    QueryError::Refused { code: field(b'C'), message: field(b'M') }
}
