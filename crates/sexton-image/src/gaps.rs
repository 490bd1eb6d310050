use sexton_model::text::escape;

/// So many parts that cannot be read are listed; more are only counted.
const N_LISTED: usize = 50;

/// What of an image cannot be read.
#[derive(Debug, Default)]
pub(crate) struct Gaps {
    texts: Vec<String>,
    n_more: usize,
}

impl Gaps {
    pub(crate) fn add(&mut self, text: String) {
        if self.texts.len() < N_LISTED {
            self.texts.push(text);
        } else {
            self.n_more += 1;
        }
    }

    /// For one file of the image.
    pub(crate) fn of(&mut self, path: &[u8], why: impl std::fmt::Display) {
        self.add(format!("/{}: {why}", escape(path)));
    }

    pub(crate) fn into_texts(self) -> Vec<String> {
        let mut texts = self.texts;
        if self.n_more > 0 {
            texts.push(format!("and {} more parts cannot be read", self.n_more));
        }
        texts
    }
}
