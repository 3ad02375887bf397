//! Tenants, API keys and accounts.

use payonce_core::id::ApiKeyId;
use payonce_core::ports::directory::{Account, ApiKey};

use super::{Fixture, at_once};
use crate::build::{Build, START, account, channel, sealed, tenant};

fn api_key(build: &Build, owner: &str, label: &str) -> ApiKey {
    ApiKey {
        id: ApiKeyId::derived(&build.bytes()),
        tenant: tenant(owner),
        label: label.to_owned(),
        hash: build.bytes(),
        created_at: build.now(),
        revoked_at: None,
    }
}

fn sample_account(owner: &str, name: &str, settings: &str) -> Account {
    Account { name: account(name), tenant: tenant(owner), channel: channel("alipay"), settings: sealed(settings), created_at: START }
}

pub async fn a_store_answers_a_ping<F: Fixture>(fixture: &F) {
    assert_eq!(fixture.store().ping().await, Ok(()));
    assert_eq!(fixture.second().ping().await, Ok(()));
}

pub async fn an_api_key_is_found_by_its_hash<F: Fixture>(fixture: &F) {
    let (store, build) = (fixture.store(), Build::new(40));
    let keys = [api_key(&build, "m1", "shop 茶's"), api_key(&build, "m1", ""), api_key(&build, "m2", "x")];
    for key in &keys {
        store.put_api_key(key).await.expect("put");
    }
    for key in &keys {
        assert_eq!(fixture.second().api_key(&key.hash).await, Ok(Some(key.clone())));
    }
    assert_eq!(store.api_key(&[0; 32]).await, Ok(None));
}

pub async fn a_revoked_key_keeps_the_first_time<F: Fixture>(fixture: &F) {
    let (store, build) = (fixture.store(), Build::new(41));
    let [key, other] = ["a", "b"].map(|label| api_key(&build, "m1", label));
    store.put_api_key(&key).await.expect("put");
    store.put_api_key(&other).await.expect("put");
    let at = START.plus(std::time::Duration::from_secs(9));
    assert_eq!(store.revoke_api_key(&key.id, at).await, Ok(true));
    assert_eq!(
        store.revoke_api_key(&key.id, at.plus(std::time::Duration::from_secs(1))).await,
        Ok(false),
        "there is none to revoke any more"
    );
    assert_eq!(store.revoke_api_key(&ApiKeyId::derived(&[7; 32]), at).await, Ok(false));
    let revoked = store.api_key(&key.hash).await.expect("api key").expect("revoked keys are still found");
    assert_eq!(revoked, ApiKey { revoked_at: Some(at), ..key });
    assert_eq!(store.api_key(&other.hash).await, Ok(Some(other)));
}

pub async fn keys_are_listed_by_tenant<F: Fixture>(fixture: &F) {
    let (store, build) = (fixture.store(), Build::new(42));
    let keys = [api_key(&build, "m1", "a"), api_key(&build, "m2", "b"), api_key(&build, "m1", "c")];
    for key in &keys {
        store.put_api_key(key).await.expect("put");
    }
    let labels = |mut keys: Vec<ApiKey>| {
        keys.sort_by(|a, b| a.label.cmp(&b.label));
        keys.into_iter().map(|key| key.label).collect::<Vec<_>>()
    };
    assert_eq!(labels(store.api_keys(None).await.expect("keys")), ["a", "b", "c"]);
    assert_eq!(labels(store.api_keys(Some(&tenant("m1"))).await.expect("keys")), ["a", "c"]);
    assert_eq!(store.api_keys(Some(&tenant("m3"))).await, Ok(Vec::new()));
}

pub async fn an_account_gets_new_settings_from_its_tenant_only<F: Fixture>(fixture: &F) {
    let store = fixture.store();
    assert_eq!(store.put_account(&sample_account("m1", "ali", "old")).await, Ok(true));
    assert_eq!(store.put_account(&sample_account("m1", "ALI", "another")).await, Ok(true), "names are byte-exact");
    assert_eq!(store.put_account(&sample_account("m1", "ali", "new")).await, Ok(true));
    assert_eq!(store.put_account(&sample_account("m2", "ali", "theirs")).await, Ok(false), "the name is another tenant's");
    let stored = fixture.second().account(&account("ali")).await.expect("account").expect("it is there");
    assert_eq!(stored, sample_account("m1", "ali", "new"));
    assert_eq!(store.account(&account("none")).await, Ok(None));
    let mut names: Vec<String> = store.accounts().await.expect("accounts").into_iter().map(|row| row.name.to_string()).collect();
    names.sort();
    assert_eq!(names, ["ALI", "ali"]);
}

pub async fn b058_one_of_two_tenants_gets_an_account_name<F: Fixture>(fixture: &F) {
    let put = at_once(fixture, 16, |n, store| async move {
        let owner = ["m1", "m2"][(n / 2) % 2];
        (owner, store.put_account(&sample_account(owner, "ali", owner)).await.expect("put"))
    })
    .await;
    let stored = fixture.store().account(&account("ali")).await.expect("account").expect("one of them has it");
    for (owner, landed) in put {
        assert_eq!(landed, tenant(owner) == stored.tenant, "all of one tenant's, none of the other's");
    }
    assert_eq!(stored.settings, sealed(stored.tenant.as_str()));
}
