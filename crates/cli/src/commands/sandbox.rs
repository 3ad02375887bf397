//! `payonce sandbox`: the simulated channels, until they are told to end.

use std::net::SocketAddr;

use crate::args::service::Sandbox;
use crate::ending::Ending;
use crate::exit::{Exit, Fault};
use crate::printer::talk;

pub(crate) async fn run(args: Sandbox) -> Result<Exit, Fault> {
    let listen: SocketAddr = args.listen.parse().map_err(|_| {
        Fault::new(format!("{:?} is no address to listen on", args.listen))
            .hint("write an IP address and a port: 127.0.0.1:9090, or port 0 for a free one")
    })?;
    let options = payonce_sandbox::Options { listen, seed: args.seed, auto_pay: args.auto_pay, ..payonce_sandbox::Options::default() };
    let mut ending = Ending::listen(args.until_stdin_closes)?;
    let sandbox = payonce_sandbox::Sandbox::start(options).await.map_err(|why| Fault::new(format!("the sandbox does not start: {why}")))?;
    talk(format!("listening on http://{}", sandbox.addr()));
    ending.told().await;
    sandbox.shutdown().await;
    Ok(Exit::Done)
}
