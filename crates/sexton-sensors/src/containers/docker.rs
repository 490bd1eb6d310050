//! Follows a daemon that speaks the Docker API.

mod images;
mod restarts;

use std::collections::VecDeque;
use std::time::Instant;

use images::Images;

use super::api::{self, Happening, Identity, Lines, Listed, State};
use super::client::{Answer, Got, Trouble, ask};
use super::session::{OVERLAP_NS, PAST_LIMIT, Told, Worker};

/// Tells what happened since then, what there is, and what happens from now on.
pub(super) fn follow(worker: &Worker, since_wall_ns: u64, wall_ns: u64) -> Result<(), Trouble> {
    let past = api::events_between(since_wall_ns, wall_ns);
    let mut past = worker.asking(|| read_past(worker, ask_for(worker, &past)?))?;
    let mut list = worker.asking(|| list(worker));
    let mut images = Images::default();
    for happening in &mut past {
        name(worker, &mut images, &mut happening.identity);
    }
    if let Ok(list) = &mut list {
        for listed in &mut *list {
            name(worker, &mut images, &mut listed.identity);
        }
        worker.asking(|| add_restarts(worker, &mut past, list, since_wall_ns));
    }
    worker.tell(Told::Past(past));
    worker.tell(Told::Listed(list?));
    let since = wall_ns.saturating_sub(OVERLAP_NS);
    let stream = worker.asking(|| ask_for(worker, &api::events_since(since)))?;
    read_stream(worker, stream, &mut images)
}

fn list(worker: &Worker) -> Result<Vec<Listed>, Trouble> {
    let list = ask_for(worker, api::LIST)?.whole(worker.pace.answer)?;
    api::list(&list).map_err(Trouble::Malformed)
}

/// Has an image told by its name.
fn name(worker: &Worker, images: &mut Images, identity: &mut Identity) {
    let ask = || ask_for(worker, images::QUESTION)?.whole(worker.pace.answer);
    images.name(identity, || worker.asking(ask).ok());
}

/// Adds what the daemon counts of containers that it waits to start again. One that it does
/// not answer about is gone, or nothing that we could not do without.
fn add_restarts(worker: &Worker, past: &mut Vec<Happening>, list: &[Listed], since_ns: u64) {
    let waits = |listed: &&Listed| listed.state == State::Restarting;
    for listed in list.iter().filter(waits).take(restarts::ASKED_LIMIT) {
        let question = restarts::question(&listed.identity.id);
        let answer = ask_for(worker, &question).and_then(|answer| answer.whole(worker.pace.answer));
        match answer.map(|answer| restarts::last_life(&answer)) {
            Ok(Ok(Some(last))) => restarts::add(past, listed, &last, since_ns),
            Ok(Err(why)) => worker.tell(Told::Garbled(why)),
            Ok(Ok(None)) | Err(Trouble::Refused { .. }) => {}
            Err(_) => return,
        }
    }
}

/// All events of an answer that ends; of too many, the last.
fn read_past(worker: &Worker, mut answer: Answer) -> Result<Vec<Happening>, Trouble> {
    let until = Instant::now() + worker.pace.answer;
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
    let (mut lines, mut bytes) = (Lines::default(), Vec::new());
    loop {
        let got = answer.more(until, &mut bytes)?;
        lines.feed(&bytes, &mut take);
        bytes.clear();
        // A daemon that never ends its past must not hold us either.
        if got == Got::Nothing || Instant::now() > until {
            return Err(Trouble::Silent(worker.pace.answer));
        }
        if got == Got::End {
            lines.end(&mut take);
            return Ok(past.into());
        }
    }
}

fn read_stream(worker: &Worker, mut answer: Answer, images: &mut Images) -> Result<(), Trouble> {
    let (mut lines, mut bytes) = (Lines::default(), Vec::new());
    let mut heard = Instant::now();
    while !worker.is_over() {
        match answer.more(Instant::now() + worker.pace.tick, &mut bytes)? {
            Got::End => return Err(Trouble::Ended),
            Got::Bytes => heard = Instant::now(),
            // No events and no daemon look alike until it is asked.
            Got::Nothing if heard.elapsed() > worker.pace.silence => {
                worker.asking(|| ask_for(worker, api::PING)?.whole(worker.pace.answer))?;
                heard = Instant::now();
            }
            Got::Nothing => {}
        }
        lines.feed(&bytes, |line| {
            if let Some(mut happening) = read_line(worker, line) {
                name(worker, images, &mut happening.identity);
                worker.tell(Told::Live(Box::new(happening)));
            }
        });
        bytes.clear();
    }
    Ok(())
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

fn ask_for(worker: &Worker, target: &str) -> Result<Answer, Trouble> {
    ask(&worker.socket, target, worker.pace.answer)
}
