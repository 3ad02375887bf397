//! Private PostgreSQL servers for tests.
//!
//! What comes in: nothing but the installed programs. What goes out: servers on 127.0.0.1 with trust log-in, and fresh databases
//! on them. A server never runs as root, never touches a cluster that it did not make, and is stopped and removed when the last
//! process that uses it ends, however that happens. Where PostgreSQL is not installed, the test fails and says what to run.

mod binaries;
mod server;
mod shared;
mod wire;

use std::{
    fs::File,
    io,
    path::{Path, PathBuf},
    sync::{
        Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
};

pub(crate) use binaries::program;
pub(crate) use wire::USER;
pub use wire::{QueryError, Row};

use crate::run_dir::{self, RunDir};
use server::Server;
use wire::Session;

/// Databases of ended tests are dropped once this many lie about; each takes about 8 MB.
const LEFT_OVER_MAX: usize = 16;

/// How a private server is set up.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Whether a commit waits for the disk. Off for plain tests; on for measuring.
    pub fsync: bool,
    /// More settings, each as `name=value`; a later one wins over an earlier one and over the harness's own.
    pub settings: Vec<String>,
}

/// A server, and the right to use it for as long as this value lives.
#[derive(Debug)]
pub struct Cluster {
    port: u16,
    databases: AtomicU32,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    /// Of all tests of a run. The lease keeps its watcher from stopping it.
    Shared { dir: PathBuf, _lease: File },
    /// Of one test.
    Private { server: Mutex<Server>, dir: Option<RunDir> },
}

impl Cluster {
    /// The server that all tests of a run share. The first process starts it, and it ends some seconds after the last one.
    /// It runs without fsync.
    ///
    /// # Panics
    ///
    /// If there is none and none can be started.
    #[must_use]
    pub fn shared() -> &'static Self {
        static SHARED: OnceLock<Cluster> = OnceLock::new();
        SHARED.get_or_init(|| {
            let (port, dir, lease) = shared::join().unwrap_or_else(|error| panic!("no PostgreSQL for this test: {error}"));
            Self { port, databases: AtomicU32::new(0), kind: Kind::Shared { dir, _lease: lease } }
        })
    }

    /// A server of the caller's own, that may be killed, stopped and started again. Takes about a second.
    ///
    /// # Panics
    ///
    /// If it cannot be started.
    #[must_use]
    pub fn private(options: Options) -> Self {
        Self::start_private(&options).unwrap_or_else(|error| panic!("no PostgreSQL for this test: {error}"))
    }

    fn start_private(options: &Options) -> io::Result<Self> {
        let mut dir = RunDir::create(&run_dir::base("private")?, "pg")?;
        dir.watch(&server::pid_file(dir.path()), &dir.path().join("lock"), 0)?;
        let server = Server::create(dir.path(), options)?;
        Ok(Self { port: server.port(), databases: AtomicU32::new(0), kind: Kind::Private { server: Mutex::new(server), dir: Some(dir) } })
    }

    /// The port on 127.0.0.1; the same over restarts.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The address of a database of this server, as a store takes it.
    #[must_use]
    pub fn url(&self, database: &str) -> String {
        format!("postgres://{USER}@127.0.0.1:{}/{database}", self.port)
    }

    /// The address of a new, empty database.
    ///
    /// # Panics
    ///
    /// If the server refuses.
    #[must_use]
    pub fn fresh_database(&self) -> String {
        self.copy_of("template1")
    }

    /// The address of a new database that is a copy of one which `prepare` (say, the migrations) has filled. It is run once per
    /// server and `name`, so `name` should hold what the content depends on.
    ///
    /// # Panics
    ///
    /// If the server refuses.
    #[must_use]
    pub fn fresh_database_like(&self, name: &str, prepare: impl FnOnce(&str)) -> String {
        let template = format!("like_{name}");
        {
            let _one_at_a_time = run_dir::lock(&self.dir().join("templates")).expect("the server's directory takes a lock");
            let known = self.query("postgres", &format!("SELECT 1 FROM pg_database WHERE datname = '{template}' AND datistemplate"));
            if known.expect("pg_database can be read").is_empty() {
                // Marked as a template only when it is whole: a preparation that failed is done again.
                self.run("postgres", &format!("DROP DATABASE IF EXISTS \"{template}\" WITH (FORCE)"));
                self.run("postgres", &format!("CREATE DATABASE \"{template}\""));
                prepare(&self.url(&template));
                self.run("postgres", &format!("SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = '{template}'"));
                self.run("postgres", &format!("ALTER DATABASE \"{template}\" WITH IS_TEMPLATE true ALLOW_CONNECTIONS false"));
            }
        }
        self.copy_of(&template)
    }

    fn copy_of(&self, template: &str) -> String {
        self.drop_left_over();
        let number = self.databases.fetch_add(1, Ordering::Relaxed);
        let database = format!("test_{}_{number}", std::process::id());
        // An earlier process with the same number may have left one.
        self.run("postgres", &format!("DROP DATABASE IF EXISTS \"{database}\" WITH (FORCE)"));
        self.run("postgres", &format!("CREATE DATABASE \"{database}\" TEMPLATE \"{template}\""));
        self.url(&database)
    }

    /// Drops the databases of processes that have ended. Another test may be doing the same, so a refusal does not matter.
    fn drop_left_over(&self) {
        let databases =
            self.query("postgres", "SELECT datname FROM pg_database WHERE datname LIKE 'test\\_%'").expect("pg_database can be read");
        let ended = |name: &String| name.split('_').nth(1).is_some_and(|pid| !Path::new("/proc").join(pid).exists());
        let left_over: Vec<String> = databases.into_iter().flatten().flatten().filter(ended).collect();
        if left_over.len() >= LEFT_OVER_MAX {
            for database in left_over {
                self.query("postgres", &format!("DROP DATABASE IF EXISTS \"{database}\" WITH (FORCE)")).ok();
            }
        }
    }

    /// Runs SQL in a database of this server, given by name or by its address, on a connection of its own, and returns the rows
    /// as text. For looking at what a store left, with none of the store's code.
    ///
    /// # Errors
    ///
    /// The server's refusal, or the loss of the connection.
    pub fn query(&self, database: &str, sql: &str) -> Result<Vec<Row>, QueryError> {
        query_on(self.port, database, sql)
    }

    fn run(&self, database: &str, sql: &str) {
        if let Err(error) = self.query(database, sql) {
            panic!("{sql}: {error}");
        }
    }

    /// Kills every process of the server, as a crash would end them. [`Self::restart`] recovers.
    ///
    /// # Panics
    ///
    /// On the shared server, which other tests are using.
    pub fn kill_9(&self) {
        self.own_server("killed").kill().expect("PostgreSQL could not be killed");
    }

    /// Stops the server in good order; open connections are cut.
    ///
    /// # Panics
    ///
    /// On the shared server, which other tests are using.
    pub fn stop(&self) {
        self.own_server("stopped").stop().expect("PostgreSQL did not stop");
    }

    /// Starts the server again on the same data and port, stopping it first if it runs, and returns once it answers.
    ///
    /// # Panics
    ///
    /// On the shared server, which other tests are using.
    pub fn restart(&self) {
        let mut server = self.own_server("restarted");
        server.stop().expect("PostgreSQL did not stop");
        server.start().expect("PostgreSQL did not start again");
    }

    fn own_server(&self, done: &str) -> MutexGuard<'_, Server> {
        match &self.kind {
            Kind::Shared { .. } => panic!("the shared server must not be {done}; take Cluster::private"),
            Kind::Private { server, .. } => server.lock().unwrap_or_else(PoisonError::into_inner),
        }
    }

    fn dir(&self) -> &Path {
        match &self.kind {
            Kind::Shared { dir, .. } => dir,
            Kind::Private { dir: Some(dir), .. } => dir.path(),
            Kind::Private { dir: None, .. } => unreachable!("a private server loses its directory only when it is dropped"),
        }
    }
}

pub(crate) fn query_on(port: u16, database: &str, sql: &str) -> Result<Vec<Row>, QueryError> {
    Session::open(port, name_of(database))?.query(sql)
}

/// The name of a database that is given by its name or by its address.
pub(crate) fn name_of(database: &str) -> &str {
    database.rsplit_once('/').map_or(database, |(_, name)| name)
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if let Kind::Private { server, dir } = &mut self.kind {
            // Also runs while a failed test unwinds, where a panic would abort; the watcher sees to what is left.
            server.get_mut().unwrap_or_else(PoisonError::into_inner).quit().ok();
            if let Some(dir) = dir.take() {
                dir.remove();
            }
        }
    }
}
