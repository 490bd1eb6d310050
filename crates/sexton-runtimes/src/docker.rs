//! Follows a daemon that speaks the Docker API.

pub(crate) mod api;
mod images;
mod restarts;

use std::collections::VecDeque;
use std::convert::Infallible;

use bytes::Bytes;
use images::Images;
use tokio::time::timeout;

use crate::connection::within;
use crate::container::{Happening, Identity, Listed, State};
use crate::http::{Answer, ask, ask_whole};
use crate::session::{OVERLAP_NS, PAST_LIMIT, Told, Worker};
use crate::trouble::Trouble;
use api::Lines;

/// Tells what happened since then, what there is, and what happens from now on.
pub(crate) async fn follow(
    worker: &Worker,
    since_wall_ns: u64,
    wall_ns: u64,
) -> Result<Infallible, Trouble> {
    let past = api::events_between(since_wall_ns, wall_ns);
    let mut past = worker.asking(read_past(worker, &past)).await?;
    let mut list = worker.asking(list(worker)).await;
    let mut images = Images::default();
    for happening in &mut past {
        name(worker, &mut images, &mut happening.identity).await;
    }
    if let Ok(list) = &mut list {
        for listed in &mut *list {
            name(worker, &mut images, &mut listed.identity).await;
        }
        let restarts = add_restarts(worker, &mut past, list, since_wall_ns);
        worker.asking(restarts).await;
    }
    worker.tell(Told::Past(past));
    worker.tell(Told::Listed(list?));
    let target = api::events_since(wall_ns.saturating_sub(OVERLAP_NS));
    let stream = worker
        .asking(ask(&worker.socket, &target, worker.pace.answer))
        .await?;
    read_stream(worker, stream, &mut images).await
}

async fn list(worker: &Worker) -> Result<Vec<Listed>, Trouble> {
    let list = whole(worker, api::LIST).await?;
    api::list(&list).map_err(Trouble::Malformed)
}

/// Has an image told by its name.
async fn name(worker: &Worker, images: &mut Images, identity: &mut Identity) {
    if images.is_asked_for(identity) {
        let answer = worker.asking(whole(worker, images::QUESTION)).await;
        images.learn(answer.ok().as_deref());
    }
    images.name(identity);
}

/// Adds what the daemon counts of containers that it waits to start again. One that it does
/// not answer about is gone, or nothing that we could not do without.
async fn add_restarts(worker: &Worker, past: &mut Vec<Happening>, list: &[Listed], since_ns: u64) {
    let waits = |listed: &&Listed| listed.state == State::Restarting;
    for listed in list.iter().filter(waits).take(restarts::ASKED_LIMIT) {
        let question = restarts::question(&listed.identity.id);
        let answer = whole(worker, &question).await;
        match answer.map(|answer| restarts::last_life(&answer)) {
            Ok(Ok(Some(last))) => restarts::add(past, listed, &last, since_ns),
            Ok(Err(why)) => worker.tell(Told::Garbled(why)),
            Ok(Ok(None)) | Err(Trouble::Refused { .. }) => {}
            Err(_) => return,
        }
    }
}

/// All events of an answer that ends; of too many, the last. A daemon that never ends its
/// past must not hold us either.
async fn read_past(worker: &Worker, target: &str) -> Result<Vec<Happening>, Trouble> {
    let limit = worker.pace.answer;
    let mut answer = ask(&worker.socket, target, limit).await?;
    let mut past = VecDeque::new();
    let mut take = |line: Option<&[u8]>| {
        if let Some(happening) = read_line(worker, line) {
            past.push_back(happening);
        }
        if past.len() > PAST_LIMIT {
            past.pop_front();
            worker.lose();
        }
    };
    let all = async {
        let mut lines = Lines::default();
        while let Some(bytes) = answer.more().await? {
            lines.feed(&bytes, &mut take);
        }
        lines.end(&mut take);
        Ok(())
    };
    within(limit, all).await?;
    Ok(past.into())
}

async fn read_stream(
    worker: &Worker,
    mut answer: Answer,
    images: &mut Images,
) -> Result<Infallible, Trouble> {
    let mut lines = Lines::default();
    loop {
        match timeout(worker.pace.silence, answer.more()).await {
            Ok(bytes) => {
                let bytes = bytes?.ok_or(Trouble::Ended)?;
                tell_lines(worker, &mut lines, &bytes, images).await;
            }
            // No events and no daemon look alike until it is asked.
            Err(_) => {
                worker.asking(whole(worker, api::PING)).await?;
            }
        }
    }
}

/// Tells the events whose lines are complete now.
async fn tell_lines(worker: &Worker, lines: &mut Lines, bytes: &Bytes, images: &mut Images) {
    let mut happenings = Vec::new();
    lines.feed(bytes, |line| happenings.extend(read_line(worker, line)));
    for mut happening in happenings {
        name(worker, images, &mut happening.identity).await;
        worker.tell(Told::Live(Box::new(happening)));
    }
}

/// What a line says; one that makes no sense is told as such.
fn read_line(worker: &Worker, line: Option<&[u8]>) -> Option<Happening> {
    let told = match line {
        Some(line) => api::event(line),
        None => Err(format!("it is over {} bytes", api::LINE_LIMIT_BYTES)),
    };
    told.unwrap_or_else(|why| {
        worker.tell(Told::Garbled(why));
        None
    })
}

async fn whole(worker: &Worker, target: &str) -> Result<Vec<u8>, Trouble> {
    ask_whole(&worker.socket, target, worker.pace.answer).await
}

pub(crate) mod fuzzing {
    //! For the fuzz targets.

    use super::*;

    /// The image of a container by a list of images.
    pub fn docker_image(body: &[u8], identity: &mut Identity) {
        let mut images = Images::default();
        images.learn(Some(body));
        images.name(identity);
    }

    /// What happened to a container that waits to be started again.
    pub fn docker_restart(body: &[u8], listed: &Listed) -> Vec<Happening> {
        let mut past = Vec::new();
        if let Ok(Some(last)) = restarts::last_life(body) {
            restarts::add(&mut past, listed, &last, 0);
        }
        past
    }
}
