//! The conformance suite of all stores: written once, run on memory, SQLite and PostgreSQL.
//!
//! What comes in: a [`Fixture`] with an empty store. What goes out: nothing, or a panic that says what does not hold. A store crate's
//! `tests/suite.rs` implements [`Fixture`] and calls [`crate::store_suite`], which makes one test per case:
//!
//! ```ignore
//! struct Fresh { store: Arc<MyStore>, clock: Arc<Fixed> }
//! impl payonce_testkit::suite::Fixture for Fresh { … }
//! payonce_testkit::store_suite!(Fresh::new().await);
//! ```
//!
//! Each case wants a store of its own: it takes due rows of all tenants and would meet those of another case.

#![expect(clippy::cloned_ref_to_slice_refs, reason = "what is expected reads better as a list of one than as a slice made of a reference")]

pub mod directory;
pub mod due;
pub mod inbox;
pub mod outbox;
pub mod payments;
pub mod records;
pub mod records_races;
pub mod stress;
pub mod violations;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use payonce_core::ports::Store;

/// An empty store, made for one case.
pub trait Fixture: Send + Sync {
    /// The store.
    fn store(&self) -> Arc<dyn Store>;

    /// Another handle on the same data, as another node has one. Where a store can have only one, the same.
    fn second(&self) -> Arc<dyn Store> {
        self.store()
    }

    /// Moves on the clock that the guard's leases follow.
    fn advance(&self, by: Duration);
}

/// Both handles in turn.
fn handle(fixture: &impl Fixture, n: usize) -> Arc<dyn Store> {
    if n.is_multiple_of(2) { fixture.store() } else { fixture.second() }
}

/// Runs `count` tasks at once, each with a handle of its own, and gives back what they returned, in their order.
async fn at_once<T, W>(fixture: &impl Fixture, count: usize, work: impl Fn(usize, Arc<dyn Store>) -> W) -> Vec<T>
where
    T: Send + 'static,
    W: Future<Output = T> + Send + 'static,
{
    let gate = Arc::new(tokio::sync::Barrier::new(count));
    let tasks: Vec<_> = (0..count)
        .map(|n| {
            let (gate, work) = (gate.clone(), work(n, handle(fixture, n)));
            tokio::spawn(async move {
                gate.wait().await;
                work.await
            })
        })
        .collect();
    let mut results = Vec::with_capacity(count);
    for task in tasks {
        results.push(task.await.expect("a task panicked"));
    }
    results
}

/// Makes one `#[tokio::test]` per case. The expression makes a new [`Fixture`] and may await; the crate needs `tokio` with `macros` and
/// `rt-multi-thread`.
#[macro_export]
macro_rules! store_suite {
    ($fixture:expr) => {
        $crate::store_cases! { $fixture;
            records {
                a_claim_is_won_once_and_found_as_it_was_stored,
                b016_an_answer_is_kept_byte_for_byte,
                a_zombie_is_refused_after_a_takeover,
                b003_a_lapsed_lease_is_taken_over_and_a_live_one_is_not,
                a_takeover_meets_only_what_was_seen,
                b006_a_renewed_lease_holds,
                a_released_key_is_claimed_again_and_its_zombie_is_refused,
                a_parked_row_is_resumed_and_keeps_its_expiry,
                a_lapsed_row_is_parked_once,
                only_running_rows_are_written,
                b029_an_expired_answer_is_reused_with_a_new_fingerprint_and_life,
                b030_running_and_parked_rows_are_never_swept,
                a_sweep_is_bounded_and_takes_only_what_expired,
                an_operator_removes_only_what_is_stuck,
                rows_are_found_by_key_in_any_scope_newest_first,
                b027_keys_are_byte_exact,
                b025_tenants_are_apart,
                b026_scopes_are_apart,
                a_batch_answers_in_its_own_order,
                a_batch_may_name_a_key_twice,
                a_batch_of_writes_may_name_a_row_twice,
                empty_batches_are_nothing,
            }
            records_races {
                b012_one_of_64_wins_a_key,
                b029_one_of_ten_reuses_an_expired_answer,
                one_of_64_takes_a_lapsed_row_over,
                a_keep_and_a_takeover_never_both_land,
                b036_batches_in_opposite_orders_do_not_wedge,
            }
            payments {
                a_new_payment_loads_as_it_was_applied,
                a_full_aggregate_loads_as_it_was_applied,
                each_change_loads_as_it_was_applied,
                b058_nothing_is_seen_by_another_tenant,
                a_stale_change_conflicts_and_writes_nothing,
                an_order_is_taken_once_and_numbers_are_byte_exact,
                an_id_is_used_once,
                a_change_of_what_is_not_there_conflicts,
                b001_one_of_64_inserts_the_order,
                one_of_64_changes_a_version,
                b025_references_and_numbers_are_free_in_other_places,
                attempts_and_refunds_are_found_by_their_tenant_only,
                the_timeline_is_an_unbroken_chain,
                a_list_filters_by_all_that_is_given,
                a_list_pages_from_the_newest,
            }
            violations {
                a_second_live_attempt_leaves_nothing,
                a_second_live_attempt_is_free_once_the_first_is_released,
                a_used_channel_reference_leaves_nothing,
                a_used_refund_reference_leaves_nothing,
                a_used_refund_number_leaves_nothing,
                a_booked_surplus_leaves_nothing,
                b048_mark_and_effect_commit_together,
                b046_one_of_many_settles_an_inbox_row,
                b076_one_of_16_payments_books_a_surplus,
            }
            due {
                due_payments_are_taken_earliest_first_and_held,
                a_hold_runs_out,
                a_payment_that_was_let_go_is_due_again,
                what_is_not_due_is_not_taken,
                a_change_moves_the_due_time,
                two_handles_share_what_is_due,
            }
            inbox {
                a_notification_is_received_once,
                b052_another_event_of_the_order_is_another_row,
                a_batch_of_events_is_received_whole,
                b025_identities_are_apart_by_account,
                b046_one_of_50_copies_is_new,
                waiting_rows_are_taken_oldest_first_and_held,
                two_handles_share_what_waits,
                b005_a_row_whose_worker_died_is_taken_again,
                a_judged_row_waits_until_its_time,
                a_settled_row_stays_settled,
                b043_an_unmatched_row_is_kept_and_tried_again,
                a_sweep_keeps_what_is_still_to_be_settled,
                rows_are_listed_by_tenant_newest_first,
            }
            outbox {
                events_of_a_payment_go_out_one_after_the_other,
                other_payments_are_not_blocked,
                a_failed_delivery_comes_again_at_its_time_and_blocks_until_then,
                a_dead_or_feed_only_event_makes_way,
                an_acknowledged_event_stays_acknowledged,
                two_handles_share_what_is_to_be_delivered,
                a_hold_runs_out_and_the_event_is_delivered_again,
                a_feed_has_positions_without_gaps,
                a_feed_is_read_page_by_page,
                feeds_are_apart_by_tenant,
                b042_a_reader_of_the_feed_misses_nothing_while_64_write,
            }
            directory {
                a_store_answers_a_ping,
                an_api_key_is_found_by_its_hash,
                a_revoked_key_keeps_the_first_time,
                keys_are_listed_by_tenant,
                an_account_gets_new_settings_from_its_tenant_only,
                b058_one_of_two_tenants_gets_an_account_name,
            }
            stress {
                acknowledged_changes_replay_to_the_same_end,
            }
        }
    };
}

/// Makes the tests that [`store_suite`] lists.
#[doc(hidden)]
#[macro_export]
macro_rules! store_cases {
    ($fixture:expr; $($family:ident { $($case:ident,)* })*) => {
        $(mod $family {
            #[allow(unused_imports, reason = "the expression may need what stands around the call")]
            use super::*;
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $case() {
                let fixture = $fixture;
                $crate::suite::$family::$case(&fixture).await;
            })*
        })*
    };
}

#[cfg(test)]
mod tests {
    /// A case that no store runs would be a silent skip.
    #[test]
    fn every_case_is_listed() {
        let listed = include_str!("mod.rs");
        let files = [
            include_str!("directory.rs"),
            include_str!("due.rs"),
            include_str!("inbox.rs"),
            include_str!("outbox.rs"),
            include_str!("payments.rs"),
            include_str!("records.rs"),
            include_str!("records_races.rs"),
            include_str!("stress.rs"),
            include_str!("violations.rs"),
        ];
        let cases = files.iter().flat_map(|file| file.split("\npub async fn ").skip(1)).filter_map(|rest| rest.split_once('<'));
        let missing: Vec<&str> = cases.map(|(name, _)| name).filter(|name| !listed.contains(&format!(" {name},\n"))).collect();
        assert_eq!(missing, Vec::<&str>::new());
    }
}
