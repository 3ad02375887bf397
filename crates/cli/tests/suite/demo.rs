//! `payonce demo`: every story comes out right, again and again on one database, on both engines.

use payonce_testkit::postgres::Cluster;
use serde_json::Value;

use crate::binary::{Ended, Folder, run};

fn is_good(ended: &Ended) {
    assert_eq!(ended.code, 0, "{ended:?}");
    let lines = ended.json();
    let lines = lines.as_array().expect("a list");
    let stories: Vec<&str> = lines.iter().filter_map(|line| line["story"].as_str()).collect();
    for story in
        ["lost-request", "lost-answer", "crash", "double-click", "forged", "early", "lost-notification", "switch", "partial-refunds"]
    {
        assert!(stories.contains(&story), "{story} in {stories:?}");
    }
    for line in lines.iter().filter(|line| line["story"] != "all") {
        assert_eq!((&line["verdict"], &line["charges"]), (&Value::from("good"), &Value::from(1)), "{line}");
    }
    // Talk is on stderr, and there is no progress in a pipe.
    assert!(!ended.stderr.contains('\r') && ended.stderr.contains("all good"), "{}", ended.stderr);
}

#[test]
fn every_story_is_good_and_can_be_played_again_on_the_same_file() {
    let folder = Folder::new();
    for seed in ["7", "7"] {
        is_good(&run(folder.path(), &format!("demo --json --seed {seed} --database sqlite://played.db")));
    }
    assert!(folder.path().join("played.db").exists());
}

#[test]
fn every_story_is_good_on_postgresql_and_can_be_played_again() {
    let database = Cluster::shared().fresh_database();
    let folder = Folder::new();
    for _ in 0..2 {
        is_good(&run(folder.path(), &format!("demo --json --channel alipay --database {database}")));
    }
}
