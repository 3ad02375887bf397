//! A PgBouncer in transaction mode in front of a cluster of the tests.
//!
//! What comes in: a cluster and the size of the pool. What goes out: addresses through the pooler. It listens on 127.0.0.1 only,
//! never runs as root, and ends with this value, or with the process if that is killed.

use std::{
    fs::{self, File},
    io,
    process::Child,
    time::Duration,
};

use crate::{
    ports,
    postgres::{self, Cluster, QueryError, Row, USER},
    run_dir::{self, Owner, RunDir},
    sys::{self, Signal},
};

const READY_DUE: Duration = Duration::from_secs(20);
const STOP_DUE: Duration = Duration::from_secs(10);

/// A running pooler.
#[derive(Debug)]
pub struct PgBouncer {
    port: u16,
    child: Child,
    dir: Option<RunDir>,
}

impl PgBouncer {
    /// Starts one with `pool_size` server connections per database, in transaction mode: a connection to the server is lent for one
    /// transaction, so nothing that a session keeps (prepared statements, advisory locks, LISTEN) survives.
    ///
    /// # Panics
    ///
    /// If PgBouncer is not installed or does not start.
    #[must_use]
    pub fn start(cluster: &Cluster, pool_size: u32) -> Self {
        let mut tries = 0;
        loop {
            tries += 1;
            match Self::start_on(cluster, pool_size, ports::free_port()) {
                Ok(started) => return started,
                // The port may have been taken since it was found free.
                Err(error) if tries < 3 && error.kind() == io::ErrorKind::AddrInUse => {}
                Err(error) => panic!("no PgBouncer for this test: {error}"),
            }
        }
    }

    fn start_on(cluster: &Cluster, pool_size: u32, port: u16) -> io::Result<Self> {
        let program = postgres::program("pgbouncer")?;
        let owner = Owner::for_servers()?;
        let mut dir = RunDir::create(&run_dir::base("pgbouncer")?, "pgbouncer")?;
        let work = dir.path().join("work");
        fs::create_dir(&work)?;
        run_dir::give(&work, owner)?;
        let (config, log, pid_file) = (work.join("pgbouncer.ini"), work.join("log"), work.join("pid"));
        fs::write(&config, configuration(cluster.port(), port, pool_size))?;
        dir.watch(&pid_file, &dir.path().join("lock"), 0)?;
        let output = File::create(&log)?;
        let mut command = run_dir::command(&program, &work, owner);
        let mut child = command.arg(&config).stdout(output.try_clone()?).stderr(output).spawn()?;
        fs::write(&pid_file, format!("{}\n", child.id()))?;
        let mut ended = false;
        let listens = ports::wait_until(READY_DUE, || {
            ended = !matches!(child.try_wait(), Ok(None));
            ended || fs::read_to_string(&log).is_ok_and(|said| said.contains("process up"))
        });
        if listens && !ended {
            return Ok(Self { port, child, dir: Some(dir) });
        }
        child.kill().ok();
        child.wait().ok();
        let said = fs::read_to_string(&log).unwrap_or_default();
        dir.remove();
        let kind = if said.contains("in use") { io::ErrorKind::AddrInUse } else { io::ErrorKind::Other };
        Err(io::Error::new(kind, format!("PgBouncer did not start:\n{said}")))
    }

    /// The port on 127.0.0.1.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The address, through the pooler, of a database that is given by its name or by its address on the cluster.
    #[must_use]
    pub fn url(&self, database: &str) -> String {
        format!("postgres://{USER}@127.0.0.1:{}/{}", self.port, postgres::name_of(database))
    }

    /// Runs SQL through the pooler on a connection of its own, and returns the rows as text.
    ///
    /// # Errors
    ///
    /// The refusal of the server or the pooler, or the loss of the connection.
    pub fn query(&self, database: &str, sql: &str) -> Result<Vec<Row>, QueryError> {
        postgres::query_on(self.port, database, sql)
    }
}

fn configuration(server: u16, port: u16, pool_size: u32) -> String {
    format!(
        "[databases]\n\
         * = host=127.0.0.1 port={server} user={USER}\n\
         [pgbouncer]\n\
         listen_addr = 127.0.0.1\n\
         listen_port = {port}\n\
         unix_socket_dir =\n\
         auth_type = any\n\
         pool_mode = transaction\n\
         default_pool_size = {pool_size}\n\
         max_client_conn = 500\n\
         server_lifetime = 3600\n\
         ignore_startup_parameters = extra_float_digits\n"
    )
}

impl Drop for PgBouncer {
    fn drop(&mut self) {
        // Also runs while a failed test unwinds, where a panic would abort; the watcher sees to what is left.
        sys::signal(self.child.id(), Signal::Quit).ok();
        if !ports::wait_until(STOP_DUE, || !matches!(self.child.try_wait(), Ok(None))) {
            self.child.kill().ok();
            self.child.wait().ok();
        }
        if let Some(dir) = self.dir.take() {
            dir.remove();
        }
    }
}
