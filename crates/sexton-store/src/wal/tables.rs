//! What writer and reader of an open segment both remember of it: words and series that
//! came before, by number, and the last value of each series.

use std::sync::Arc;

use crate::row::Known;

/// Beyond these, words and series are written in full each time: memory is bounded
/// however many cgroups come and go.
const MAX_WORDS: usize = 1 << 15;
const MAX_WORD_BYTES: usize = 1 << 20;
const MAX_SERIES: usize = 1 << 14;

#[derive(Debug, Default)]
pub(crate) struct Tables {
    pub(crate) words: Vec<Arc<str>>,
    word_bytes: usize,
    pub(crate) series: Vec<Arc<Known>>,
    /// The last whole value of each series in this block.
    pub(crate) last: Vec<i64>,
    /// The last time in this block.
    pub(crate) last_ns: u64,
}

impl Tables {
    /// A block can be read without the blocks before it, once the tables are known.
    pub(crate) fn begin_block(&mut self) {
        self.last.fill(0);
        self.last_ns = 0;
    }

    pub(crate) fn can_learn_word(&self, word: &str) -> bool {
        self.words.len() < MAX_WORDS && self.word_bytes + word.len() <= MAX_WORD_BYTES
    }

    pub(crate) fn learn_word(&mut self, word: Arc<str>) {
        self.word_bytes += word.len();
        self.words.push(word);
    }

    /// Forgets what was learned since there were so many words and series.
    pub(crate) fn truncate(&mut self, (n_words, n_series): (usize, usize)) {
        self.words.truncate(n_words);
        self.word_bytes = self.words.iter().map(|word| word.len()).sum();
        self.series.truncate(n_series);
        self.last.truncate(n_series);
    }

    pub(crate) fn can_learn_series(&self) -> bool {
        self.series.len() < MAX_SERIES
    }

    pub(crate) fn learn_series(&mut self, known: Arc<Known>) {
        self.series.push(known);
        self.last.push(0);
    }
}
