//! Where the stories play: the sandbox and the service as processes of their own, and the merchant's receiver.

use std::path::PathBuf;

use payonce_core::clock::{Entropy, random};
use payonce_core::secret::Secret;

use super::child::{Child, Recipe};
use super::ground::Ground;
use super::merchant::Merchant;
use crate::client::Client;
use crate::exit::Fault;

/// Shorter than in production, in the same order: nobody wants to wait a minute for a lease to lapse.
const TIMINGS: [(&str, &str); 7] = [
    ("PAYONCE_GUARD_LEASE", "3s"),
    ("PAYONCE_CHANNEL_DEADLINE", "2s"),
    ("PAYONCE_HTTP_ANSWER_DUE", "4s"),
    ("PAYONCE_RECONCILE_FIRST_LOOK_UP", "300ms"),
    ("PAYONCE_RECONCILE_LOOK_UP_MAX", "2s"),
    ("PAYONCE_RECONCILE_INTERVAL", "200ms"),
    ("PAYONCE_HTTP_DRAIN", "5s"),
];

/// Everything that plays along.
pub(super) struct Stage {
    /// The channels.
    pub(super) sandbox: Client,
    /// The service, with its API key.
    pub(super) api: Client,
    /// Who is told.
    pub(super) merchant: Merchant,
    service: Child,
    channels: Child,
    recipe: Recipe,
    /// Begins every order number of this run, so that a database can be played on again.
    pub(super) run: String,
}

impl Stage {
    /// Sets the stage in `dir`, on `ground`.
    pub(super) async fn set(dir: PathBuf, run: String, ground: &Ground, seed: u64, entropy: &dyn Entropy) -> Result<Self, Fault> {
        use base64::Engine as _;
        let secret = format!("whsec_{}", base64::engine::general_purpose::STANDARD.encode(random::<32>(entropy)));
        let merchant = Merchant::start(Secret::new(secret.clone())).await?;
        let channels = Child::start(&Recipe {
            args: ["sandbox", "--listen", "127.0.0.1:0", "--seed", &seed.to_string()].map(str::to_owned).to_vec(),
            env: Vec::new(),
            dir: dir.clone(),
            log: dir.join("sandbox.log"),
        })
        .await?;
        let mut env: Vec<(String, String)> = TIMINGS.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let own = [
            ("PAYONCE_SANDBOX_URL", channels.url().to_owned()),
            ("PAYONCE_DATABASE_URL", ground.url.clone()),
            ("PAYONCE_MERCHANT_SECRET", secret),
            ("PAYONCE_MERCHANT_ALLOW_HOSTS", merchant.host()),
            ("PAYONCE_LOG", "info".to_owned()),
        ];
        env.extend(own.map(|(name, value)| (name.to_owned(), value)));
        env.extend(ground.key_file.clone().map(|file| ("PAYONCE_SECRETS_KEY_FILE".to_owned(), file)));
        let mut recipe = Recipe {
            args: ["serve", "--sandbox", "--listen", "127.0.0.1:0"].map(str::to_owned).to_vec(),
            env,
            log: dir.join("service.log"),
            dir,
        };
        let service = Child::start(&recipe).await?;
        // After a crash it comes back where the channels and the merchant know it, with the same key.
        if let Some(listen) = recipe.args.last_mut() {
            *listen = service.url().trim_start_matches("http://").to_owned();
        }
        let api_key = service.api_key().ok_or_else(|| Fault::new("the service told no API key"))?.to_owned();
        recipe.env.push(("PAYONCE_SANDBOX_API_KEY".to_owned(), api_key.clone()));
        Ok(Self {
            sandbox: Client::new(channels.url(), None),
            api: Client::new(service.url(), Some(&api_key)),
            merchant,
            service,
            channels,
            recipe,
            run,
        })
    }

    /// `kill -9`.
    pub(super) async fn kill_service(&mut self) -> Result<(), Fault> {
        self.service.kill().await
    }

    /// Starts the service again on the same address and database.
    pub(super) async fn restart_service(&mut self) -> Result<(), Fault> {
        self.service = Child::start(&self.recipe).await?;
        Ok(())
    }

    /// Ends both processes.
    pub(super) async fn strike(self) {
        self.service.end().await;
        self.channels.end().await;
    }
}
