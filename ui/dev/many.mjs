// A flame graph that no node has: 100,461 distinct frames, four deep.

export function manyFrames() {
  const parent = [-1];
  const level = (from, n, each) => {
    for (let i = 0; i < n * each; i++) parent.push(from + (i % n));
    return parent.length - n * each;
  };
  const tens = level(0, 1, 10);
  const hundreds = level(tens, 10, 49);
  const leaves = level(hundreds, 490, 204);
  const value = parent.map((_, i) => (i >= leaves ? 1 + (i % 7) : 0));
  for (let node = parent.length - 1; node > 0; node--) value[parent[node]] += value[node];
  return {
    from: 0,
    to: 1,
    event: "samples",
    samples: value[0],
    base_samples: null,
    total: value[0],
    base_total: null,
    names: parent.map((_, i) => `f${i}`),
    nodes: { parent, name: parent.map((_, i) => i), kind: parent.map((_, i) => i % 3), value },
    cut: null,
    gaps: [],
  };
}
