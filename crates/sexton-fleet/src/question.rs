//! From nodes to what is compared: which nodes are bad, which good, and what each has.

use std::collections::BTreeMap;

use sexton_lake::{Member, SetKind, column};

use crate::compare::{Candidate, Input, Item, Kind, Measure, Order, Times};
use crate::lake::{Attribute, Nodes, Sets};
use crate::parallel;
use crate::stats::bits::Bits;

/// Fewer nodes with something are not compared, so that nothing has to be kept for them.
const MIN_NODES: usize = crate::compare::MIN_SUPPORT as usize;
/// Values of one column that are compared, at most: a column with more tells nodes, not groups.
const MAX_VALUES: usize = 5000;

/// Which nodes are bad, and since when; which are good.
#[derive(Debug, Clone, Default)]
pub struct Classes {
    /// When each node was first bad.
    pub bad_at: Vec<Option<i64>>,
    /// Whether each node is good.
    pub is_good: Vec<bool>,
    /// Columns that the question is about: they differ by definition.
    pub asked: Vec<String>,
    /// Whether findings of severity serious differ by definition.
    pub asked_severity: bool,
}

/// Where nodes are in sets of nodes: bad ones first, good ones from a multiple of 64 on.
struct Places {
    of_node: Vec<Option<usize>>,
    n_places: usize,
    bad: Bits,
    good: Bits,
}

impl Places {
    fn of(classes: &Classes) -> Self {
        let n_bad = classes.bad_at.iter().flatten().count();
        let start = n_bad.next_multiple_of(64);
        let is_good = |node: usize| classes.is_good[node] && classes.bad_at[node].is_none();
        let n_good = (0..classes.bad_at.len())
            .filter(|node| is_good(*node))
            .count();
        let n_places = start + n_good;
        let (mut bad, mut good) = (Bits::none(n_places), Bits::none(n_places));
        let (mut next_bad, mut next_good) = (0, start);
        let place = |node: usize| {
            if classes.bad_at[node].is_some() {
                bad.set(next_bad);
                next_bad += 1;
                Some(next_bad - 1)
            } else if is_good(node) {
                good.set(next_good);
                next_good += 1;
                Some(next_good - 1)
            } else {
                None
            }
        };
        let of_node = (0..classes.bad_at.len()).map(place).collect();
        Self {
            of_node,
            n_places,
            bad,
            good,
        }
    }
}

/// Where an item comes from, to ask when it appeared.
enum Source {
    Value { attribute: usize, value: u32 },
    Member { attribute: usize, sets: Vec<bool> },
}

/// A question, ready to be compared.
pub struct Question<'a> {
    nodes: &'a Nodes,
    classes: &'a Classes,
    places: Places,
    attributes: Vec<&'a Attribute>,
    items: Vec<Item>,
    sources: Vec<Source>,
    masks: Vec<Bits>,
    measures: Vec<Measure>,
}

impl<'a> Question<'a> {
    /// Of nodes and classes; `sets` are those of units and of software.
    pub fn new(
        nodes: &'a Nodes,
        classes: &'a Classes,
        unit_sets: &Sets,
        software_sets: &Sets,
    ) -> Self {
        let mut question = Self {
            nodes,
            classes,
            places: Places::of(classes),
            attributes: Vec::new(),
            items: Vec::new(),
            sources: Vec::new(),
            masks: Vec::new(),
            measures: Vec::new(),
        };
        for (name, attribute) in &nodes.attributes {
            match &**name {
                column::UNIT_SET => question.members(attribute, unit_sets),
                column::SOFTWARE_SET => question.members(attribute, software_sets),
                name => question.values(name, kind_of(name), attribute),
            }
        }
        question.findings();
        question.numbers();
        question
    }

    /// What is compared.
    pub fn input(&self) -> Input<'_> {
        Input {
            bad: self.places.bad.clone(),
            good: self.places.good.clone(),
            items: &self.items,
            masks: &self.masks,
            measures: &self.measures,
            times: self,
        }
    }

    /// Whether a node has what a candidate is; none if that is not known, or it is not compared.
    pub fn has(&self, candidate: &Candidate, node: u32) -> Option<bool> {
        let place = (*self.places.of_node.get(node as usize)?)?;
        candidate.known.has(place).then(|| candidate.has.has(place))
    }

    /// Whether a node is bad; none if it is not compared.
    pub fn is_bad(&self, node: u32) -> Option<bool> {
        let place = (*self.places.of_node.get(node as usize)?)?;
        Some(self.places.bad.has(place))
    }

    fn is_asked(&self, name: &str) -> bool {
        let plain = name.strip_suffix("_max").unwrap_or(name);
        let asked = self.classes.asked.iter();
        asked
            .map(|asked| asked.strip_suffix("_max").unwrap_or(asked))
            .any(|asked| asked == plain)
    }

    /// The number of a mask; the same for the same nodes.
    fn mask(&mut self, mask: Bits) -> usize {
        let known = self.masks.iter().position(|known| *known == mask);
        known.unwrap_or_else(|| {
            self.masks.push(mask);
            self.masks.len() - 1
        })
    }

    fn values(&mut self, name: &str, kind: Kind, attribute: &'a Attribute) {
        if self.is_asked(name) {
            return;
        }
        let mut n_nodes = vec![0usize; attribute.values.len()];
        let mut mask = Bits::none(self.places.n_places);
        for change in &attribute.changes {
            if let Some(place) = self.places.of_node[change.node as usize] {
                n_nodes[change.value as usize] += 1;
                mask.set(place);
            }
        }
        let mut frequent: Vec<u32> = (0..n_nodes.len() as u32)
            .filter(|value| n_nodes[*value as usize] >= MIN_NODES)
            .collect();
        frequent.sort_by_key(|value| std::cmp::Reverse(n_nodes[*value as usize]));
        frequent.truncate(MAX_VALUES);
        let mut sets: BTreeMap<u32, Bits> = frequent
            .into_iter()
            .map(|value| (value, Bits::none(self.places.n_places)))
            .collect();
        for change in &attribute.changes {
            let place = self.places.of_node[change.node as usize];
            if let (Some(place), Some(set)) = (place, sets.get_mut(&change.value)) {
                set.set(place);
            }
        }
        let mask = self.mask(mask);
        let at = self.attributes.len();
        self.attributes.push(attribute);
        for (value, has) in sets {
            self.items.push(Item {
                kind,
                fact: name.to_owned(),
                subject: String::new(),
                value: attribute.values[value as usize].to_string(),
                has,
                mask,
            });
            self.sources.push(Source::Value {
                attribute: at,
                value,
            });
        }
    }

    fn members(&mut self, attribute: &'a Attribute, sets: &Sets) {
        let mut mask = Bits::none(self.places.n_places);
        let mut places_of_set: Vec<Vec<u32>> = vec![Vec::new(); attribute.values.len()];
        for change in &attribute.changes {
            let is_known = sets
                .0
                .get(change.value as usize)
                .is_some_and(Option::is_some);
            let place = self.places.of_node[change.node as usize].filter(|_| is_known);
            if let Some(place) = place {
                places_of_set[change.value as usize].push(place as u32);
                mask.set(place);
            }
        }
        let n_known = mask.count();
        let mut holders: BTreeMap<&Member, Vec<u32>> = BTreeMap::new();
        for (set, members) in sets.0.iter().enumerate() {
            if places_of_set.get(set).is_none_or(Vec::is_empty) {
                continue;
            }
            for member in members.iter().flat_map(|members| members.members()) {
                holders.entry(member).or_default().push(set as u32);
            }
        }
        let mask = self.mask(mask);
        let at = self.attributes.len();
        self.attributes.push(attribute);
        for (member, holding) in holders {
            let n: usize = holding
                .iter()
                .map(|set| places_of_set[*set as usize].len())
                .sum();
            if n < MIN_NODES {
                continue;
            }
            let mut has = Bits::none(self.places.n_places);
            for place in holding.iter().flat_map(|set| &places_of_set[*set as usize]) {
                has.set(*place as usize);
            }
            // What all nodes have tells nothing.
            if has.count() == n_known {
                continue;
            }
            let mut of_sets = vec![false; attribute.values.len()];
            for set in holding {
                of_sets[set as usize] = true;
            }
            self.items.push(item_of(member, has, mask));
            self.sources.push(Source::Member {
                attribute: at,
                sets: of_sets,
            });
        }
    }

    fn findings(&mut self) {
        let all = self.places.bad.or(&self.places.good);
        let mask = self.mask(all);
        let at = self.attributes.len();
        self.attributes.push(&self.nodes.findings);
        let codes = &self.nodes.findings.values;
        let mut sets = vec![Bits::none(self.places.n_places); codes.len()];
        for change in &self.nodes.findings.changes {
            let rank = self.nodes.graver.get(&(change.node, change.value));
            let differs_by_definition =
                self.classes.asked_severity && rank.is_some_and(|rank| *rank >= 3.0);
            let place = self.places.of_node[change.node as usize];
            if let Some(place) = place.filter(|_| !differs_by_definition) {
                sets[change.value as usize].set(place);
            }
        }
        for (value, has) in sets.into_iter().enumerate() {
            self.items.push(Item {
                kind: Kind::Finding,
                fact: "finding".to_owned(),
                subject: String::new(),
                value: codes[value].to_string(),
                has,
                mask,
            });
            self.sources.push(Source::Value {
                attribute: at,
                value: value as u32,
            });
        }
    }

    fn numbers(&mut self) {
        let named: Vec<(&String, &Vec<f64>)> = self
            .nodes
            .numbers
            .iter()
            .filter(|(name, _)| !column::OTHER_NUMBERS.contains(&&***name) && !self.is_asked(name))
            .collect();
        self.measures = parallel::map(&named, |(name, numbers)| {
            let mut values = vec![f64::NAN; self.places.n_places];
            for (node, place) in self.places.of_node.iter().enumerate() {
                if let Some(place) = place {
                    values[*place] = numbers[node];
                }
            }
            let of = |nodes: &Bits| -> Vec<f64> {
                let values = nodes.iter().map(|place| values[place]);
                values.filter(|value| !value.is_nan()).collect()
            };
            Measure {
                fact: (*name).clone(),
                bad: of(&self.places.bad),
                good: of(&self.places.good),
                values,
            }
        });
    }
}

fn item_of(member: &Member, has: Bits, mask: usize) -> Item {
    let (kind, fact) = match member.kind {
        SetKind::Unit => (Kind::Unit, "unit"),
        SetKind::UnitFile => (Kind::UnitFile, "unit_file"),
        SetKind::Package => (Kind::Package, "package"),
    };
    Item {
        kind,
        fact: fact.to_owned(),
        subject: member.item.clone(),
        value: member.value.clone(),
        has,
        mask,
    }
}

fn kind_of(name: &str) -> Kind {
    match name {
        column::IMAGE | column::IMAGE_BUILD => Kind::Image,
        column::ZONE => Kind::Zone,
        name if name.starts_with(column::LABEL_PREFIX) => Kind::Label,
        _ => Kind::Attribute,
    }
}

impl Times for Question<'_> {
    fn order(&self, item: usize) -> Order {
        let (attribute, is_it): (usize, Box<dyn Fn(u32) -> bool + '_>) = match &self.sources[item] {
            Source::Value { attribute, value } => {
                let value = *value;
                (*attribute, Box::new(move |other| other == value))
            }
            Source::Member { attribute, sets } => {
                (*attribute, Box::new(move |set| sets[set as usize]))
            }
        };
        let mut order = Order::default();
        let mut last = None;
        for change in &self.attributes[attribute].changes {
            // The first time counts; changes are in the order of time.
            if !is_it(change.value) || last == Some(change.node) {
                continue;
            }
            last = Some(change.node);
            let node = change.node as usize;
            let Some(bad_at) = self.classes.bad_at[node] else {
                continue;
            };
            if change.at_us > bad_at {
                // In the first report it may have been there for long.
                match change.at_us == self.nodes.first_at[node] {
                    true => order.unknown += 1,
                    false => order.after += 1,
                }
            } else if change.at_us == bad_at {
                order.unknown += 1;
            } else {
                order.before += 1;
            }
        }
        order
    }
}
