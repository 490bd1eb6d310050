//! The fleet page: what it asks, answered from the last reading of the bucket.

mod causes;
mod filter;
mod heat;
mod links;
mod node;
mod overview;
mod view;

use std::sync::{Arc, PoisonError, RwLock};

use anyhow::{Context as _, Result};
use serde_json::Value;
use sexton_web::{Asked, Refusal};

use crate::bucket::Bucket;
use crate::commands::compared;
pub use links::Links;
use view::View;

/// What is shown, and how it is read again.
pub struct Page {
    bucket: Bucket,
    hours: u64,
    links: Option<Links>,
    shown: RwLock<Shown>,
}

struct Shown {
    view: Arc<View>,
    /// Why the bucket could not be read since.
    failed: Option<String>,
}

impl Page {
    /// Reads the bucket. `now_us` is the time of this machine.
    pub fn open(bucket: Bucket, hours: u64, now_us: i64, links: Option<Links>) -> Result<Self> {
        let view = View::read_bucket(&bucket, hours, now_us)?;
        Ok(Self {
            bucket,
            hours,
            links,
            shown: RwLock::new(Shown {
                view: Arc::new(view),
                failed: None,
            }),
        })
    }

    /// Reads the bucket again. If that fails, what was read before stays, and the page says so.
    pub fn read_again(&self, now_us: i64) {
        let read = View::read_bucket(&self.bucket, self.hours, now_us);
        let mut shown = self.shown.write().unwrap_or_else(PoisonError::into_inner);
        match read {
            Ok(view) => {
                *shown = Shown {
                    view: Arc::new(view),
                    failed: None,
                };
            }
            Err(error) => shown.failed = Some(format!("{error:#}")),
        }
    }

    /// Answers what the page asks, as JSON.
    pub fn answer(&self, asked: &Asked<'_>) -> Result<Vec<u8>, Refusal> {
        let (view, failed) = {
            let shown = self.shown.read().unwrap_or_else(PoisonError::into_inner);
            (Arc::clone(&shown.view), shown.failed.clone())
        };
        let value = match asked.path {
            "fleet" => overview::answer(&view, failed),
            "heat" => heat::answer(&view, asked).map_err(makes_no_sense)?,
            "causes" => causes::answer(&view, asked).map_err(makes_no_sense)?,
            "node" => node::answer(&view, asked, self.links.as_ref())?,
            "compare" => self.compare(&view, asked).map_err(makes_no_sense)?,
            _ => return Err(refusal(404, "there is nothing of that name")),
        };
        serde_json::to_vec(&value).map_err(|error| refusal(500, error.to_string()))
    }

    fn compare(&self, view: &View, asked: &Asked<'_>) -> Result<Value> {
        let condition = |name| {
            asked
                .one(name)
                .map(str::trim)
                .filter(|text| !text.is_empty())
        };
        let (bad, good) = (condition("bad"), condition("good"));
        compared(view.read(), bad, good, self.bucket.runtime(), self.hours)
            .context("cannot compare")
    }
}

fn makes_no_sense(error: anyhow::Error) -> Refusal {
    refusal(400, format!("{error:#}"))
}

fn refusal(status: u16, detail: impl Into<String>) -> Refusal {
    Refusal {
        status,
        detail: detail.into(),
    }
}
