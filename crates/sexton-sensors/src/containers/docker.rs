//! Follows a daemon that speaks the Docker API.

use std::collections::VecDeque;
use std::time::Instant;

use super::api::{self, Happening, Lines};
use super::client::{Answer, Got, Trouble, ask};
use super::session::{OVERLAP_NS, PAST_LIMIT, Told, Worker};

/// Tells what happened since then, what there is, and what happens from now on.
pub(super) fn follow(worker: &Worker, since_wall_ns: u64, wall_ns: u64) -> Result<(), Trouble> {
    let past = api::events_between(since_wall_ns, wall_ns);
    let past = worker.asking(|| read_past(worker, ask_for(worker, &past)?))?;
    worker.tell(Told::Past(past));
    let list = worker.asking(|| ask_for(worker, api::LIST)?.whole(worker.pace.answer))?;
    let list = api::list(&list).map_err(Trouble::Malformed)?;
    worker.tell(Told::Listed(list));
    let since = wall_ns.saturating_sub(OVERLAP_NS);
    let stream = worker.asking(|| ask_for(worker, &api::events_since(since)))?;
    read_stream(worker, stream)
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

fn read_stream(worker: &Worker, mut answer: Answer) -> Result<(), Trouble> {
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
            if let Some(happening) = read_line(worker, line) {
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
