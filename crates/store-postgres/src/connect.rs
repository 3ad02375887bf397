//! Making connections, and finding out whether one is direct.
//!
//! In: an address and how statements shall be sent. Out: connections for the pool, each with what the server may keep of it. A connection is direct if the
//! server sees the very socket that we opened; behind a pooler or anything else that speaks for us it does not, and then nothing is kept in a session.

use std::net::IpAddr;
use std::time::Duration;

use deadpool::managed::{Manager, Metrics, RecycleError, RecycleResult};
use deadpool_postgres::ClientWrapper;
use payonce_core::ports::StoreFault;
use tokio::net::TcpStream;
use tokio_postgres::config::{Host, TargetSessionAttrs};
use tokio_postgres::tls::MakeTlsConnect;
use tokio_postgres::types::Type;
use tokio_postgres::{CancelToken, Client, NoTls};

use crate::StatementMode;
use crate::fault::chain;
use crate::tls::Address;

/// The port where none is named.
const PORT: u16 = 5432;

/// On a direct connection the plans are pinned: one that was made while a table was small, and that walks it, would be a time bomb.
const PIN: &str = "SET enable_seqscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off";

/// What the server may keep of a connection's statements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keeps {
    /// Nothing: there may be a pooler.
    Nothing,
    /// Statements of one row, whose plan does not depend on how large the tables are.
    Simple,
    /// All.
    All,
}

/// A connection of the pool.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) client: ClientWrapper,
    pub(crate) keeps: Keeps,
}

/// Makes them.
#[derive(Debug)]
pub(crate) struct Connector {
    pub(crate) address: Address,
    pub(crate) mode: StatementMode,
}

impl Manager for Connector {
    type Type = Connection;
    type Error = StoreFault;

    async fn create(&self) -> Result<Connection, StoreFault> {
        match (self.mode, self.address.only_host()) {
            (StatementMode::Auto, Some((host, port))) => self.open(host, port).await,
            (StatementMode::Auto | StatementMode::Typed, _) => self.by_driver(Keeps::Nothing).await,
            (StatementMode::Prepared, _) => self.by_driver(Keeps::Simple).await,
        }
    }

    async fn recycle(&self, connection: &mut Connection, _: &Metrics) -> RecycleResult<StoreFault> {
        if connection.client.is_closed() { Err(RecycleError::message("the connection is closed")) } else { Ok(()) }
    }
}

impl Connector {
    /// As the driver does it: several hosts, sockets of the file system.
    async fn by_driver(&self, keeps: Keeps) -> Result<Connection, StoreFault> {
        let config = &self.address.config;
        let client = match self.address.tls.clone() {
            None => {
                let (client, connection) = config.connect(NoTls).await.map_err(|error| refused(&error))?;
                spawn(client, connection)
            }
            Some(tls) => {
                let (client, connection) = config.connect(tls).await.map_err(|error| refused(&error))?;
                spawn(client, connection)
            }
        };
        Ok(Connection { client, keeps })
    }

    /// On a socket of our own, whose name is then compared with what the server sees.
    async fn open(&self, host: &str, port: u16) -> Result<Connection, StoreFault> {
        let config = &self.address.config;
        let stream = dial(host, port, config.get_connect_timeout().copied()).await?;
        let ours = stream.local_addr().ok();
        let client = match self.address.tls.clone() {
            None => {
                let (client, connection) = config.connect_raw(stream, NoTls).await.map_err(|error| refused(&error))?;
                spawn(client, connection)
            }
            Some(mut tls) => {
                let tls = MakeTlsConnect::<TcpStream>::make_tls_connect(&mut tls, host)
                    .map_err(|error| StoreFault::Refused(format!("{host} is no name for TLS: {error}")))?;
                let (client, connection) = config.connect_raw(stream, tls).await.map_err(|error| refused(&error))?;
                spawn(client, connection)
            }
        };
        let seen = Seen::by(&client).await.map_err(|error| refused(&error))?;
        if seen.only_reads && config.get_target_session_attrs() == TargetSessionAttrs::ReadWrite {
            return Err(StoreFault::Unavailable(format!("the database at {host}:{port} only reads: it is not the primary")));
        }
        let direct = ours.is_some_and(|ours| seen.peer == Some((ours.ip().to_canonical(), ours.port())));
        if direct {
            client.batch_execute(PIN).await.map_err(|error| refused(&error))?;
        }
        tracing::debug!(direct, "connected to the database");
        Ok(Connection { client, keeps: if direct { Keeps::All } else { Keeps::Nothing } })
    }

    /// Has the server end what it does for a connection.
    pub(crate) async fn cancel(&self, token: CancelToken) -> Result<(), StoreFault> {
        let Some((host, port)) = self.address.only_host().filter(|_| self.mode == StatementMode::Auto) else {
            let sent = match self.address.tls.clone() {
                Some(tls) => token.cancel_query(tls).await,
                None => token.cancel_query(NoTls).await,
            };
            return sent.map_err(|error| refused(&error));
        };
        let stream = dial(host, port, self.address.config.get_connect_timeout().copied()).await?;
        let sent = match self.address.tls.clone() {
            None => token.cancel_query_raw(stream, NoTls).await,
            Some(mut tls) => match MakeTlsConnect::<TcpStream>::make_tls_connect(&mut tls, host) {
                Ok(tls) => token.cancel_query_raw(stream, tls).await,
                Err(error) => return Err(StoreFault::Refused(error.to_string())),
            },
        };
        sent.map_err(|error| refused(&error))
    }
}

impl Address {
    /// The one TCP host, if that is all there is to choose from.
    fn only_host(&self) -> Option<(&str, u16)> {
        match (self.config.get_hosts(), self.config.get_hostaddrs()) {
            ([Host::Tcp(host)], []) => Some((host, self.config.get_ports().first().copied().unwrap_or(PORT))),
            _ => None,
        }
    }
}

/// What the server sees.
struct Seen {
    only_reads: bool,
    /// Whose socket the server's end is connected to.
    peer: Option<(IpAddr, u16)>,
}

impl Seen {
    async fn by(client: &Client) -> Result<Self, tokio_postgres::Error> {
        let asked: &[(&(dyn tokio_postgres::types::ToSql + Sync), Type)] = &[];
        let row = client
            .query_typed_one("SELECT current_setting('transaction_read_only'), host(inet_client_addr()), inet_client_port()", asked)
            .await?;
        let host = row.try_get::<_, Option<&str>>(1)?.and_then(|host| host.parse::<IpAddr>().ok());
        let port = row.try_get::<_, Option<i32>>(2)?.and_then(|port| u16::try_from(port).ok());
        let peer = host.zip(port).map(|(host, port)| (host.to_canonical(), port));
        Ok(Self { only_reads: row.try_get::<_, &str>(0)? == "on", peer })
    }
}

async fn dial(host: &str, port: u16, within: Option<Duration>) -> Result<TcpStream, StoreFault> {
    let failed = |why: String| StoreFault::Unavailable(format!("no connection to {host}:{port}: {why}"));
    let dialled = TcpStream::connect((host, port));
    let stream = match within {
        None => dialled.await,
        Some(within) => tokio::time::timeout(within, dialled).await.map_err(|_| failed("no answer in time".to_owned()))?,
    };
    let stream = stream.map_err(|error| failed(error.to_string()))?;
    stream.set_nodelay(true).map_err(|error| failed(error.to_string()))?;
    Ok(stream)
}

/// Nothing was sent on a connection that did not come about.
fn refused(error: &tokio_postgres::Error) -> StoreFault {
    StoreFault::Unavailable(chain(error))
}

fn spawn<S, T>(client: Client, connection: tokio_postgres::Connection<S, T>) -> ClientWrapper
where
    tokio_postgres::Connection<S, T>: Future<Output = Result<(), tokio_postgres::Error>> + Send + 'static,
{
    let driving = tokio::spawn(async move {
        if let Err(error) = connection.await {
            tracing::debug!(error = %chain(&error), "a connection to the database ended");
        }
    });
    ClientWrapper::new(client, driving)
}
