//! Control of false discoveries, by Benjamini and Hochberg.

/// The q values of p values, in the same order: the part of discoveries that may be false if
/// all with at most that q are taken. `n_tests` may be more than there are p values: tests
/// that were made and whose p is not smaller than any of these.
pub fn q_values(p_values: &[f64], n_tests: usize) -> Vec<f64> {
    let n_tests = n_tests.max(p_values.len());
    let mut order: Vec<usize> = (0..p_values.len()).collect();
    order.sort_by(|a, b| p_values[*a].total_cmp(&p_values[*b]));
    let mut q_values = vec![1.0; p_values.len()];
    let mut smallest: f64 = 1.0;
    for (rank, at) in order.iter().enumerate().rev() {
        let q = p_values[*at] * n_tests as f64 / (rank + 1) as f64;
        smallest = smallest.min(q);
        q_values[*at] = smallest;
    }
    q_values
}
