//! `payonce serve`: the service, until it is told to end.

use payonce_server::App;
use payonce_server::config::{Config, Environment, Options};

use crate::args::service::Serve;
use crate::ending::Ending;
use crate::exit::{Exit, Fault};
use crate::printer::talk;

pub(crate) async fn run(args: Serve) -> Result<Exit, Fault> {
    let options = Options {
        config: args.place.config,
        listen: args.listen,
        database: args.place.database,
        sandbox: args.sandbox,
        no_migrate: args.no_migrate,
    };
    let config = Config::load(&options, &Environment::of_process())?;
    payonce_server::observe::init_logs(&config.log);
    let mut ending = Ending::listen(args.until_stdin_closes)?;
    let running = App::build(config).await?.serve().await?;
    // Others read these lines: one fact each, and `listening on` last, because then everything answers.
    if let Some(url) = &running.sandbox_url {
        talk(format!("sandbox on {url}"));
    }
    for (_, key) in &running.api_keys {
        talk(format!("api key {}", key.expose()));
    }
    for (tenant, secret) in &running.webhook_secrets {
        talk(format!("webhook secret {} (tenant {tenant})", secret.expose()));
    }
    talk(format!("listening on http://{}", running.addr));
    tokio::select! {
        () = running.wait() => {
            running.shutdown().await;
            Err(Fault::new("the listener was lost"))
        }
        () = ending.told() => {
            if !running.shutdown().await {
                talk("some requests were still running; their keys are taken over when their leases lapse");
            }
            Ok(Exit::Done)
        }
    }
}
