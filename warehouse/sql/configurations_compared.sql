-- Which configuration retrieves best, and which were not measured?
--
-- One row a configuration, the best first within its corpus. Read complete_grounding_at_5 first: the
-- share of queries for which every gold span has at least half of its characters in the top 5.
-- Precision and recall count chunks, so compare them only between configurations of one chunker.
-- A configuration that could not run has nulls and says why in state.
SELECT
    c.corpus,
    c.config,
    c.chunker,
    c.retriever,
    c.reranker,
    max(m.value) FILTER (m.metric = 'complete_grounding' AND m.k = 5) AS complete_grounding_at_5,
    max(m.value) FILTER (m.metric = 'span_recall' AND m.k = 5) AS span_recall_at_5,
    max(m.value) FILTER (m.metric = 'span_coverage' AND m.k = 5) AS span_coverage_at_5,
    max(m.value) FILTER (m.metric = 'mrr') AS mrr,
    max(m.value) FILTER (m.metric = 'recall' AND m.k = 10) AS recall_at_10,
    max(m.value) FILTER (m.metric = 'precision' AND m.k = 5) AS precision_at_5,
    max(m.n_queries) FILTER (m.metric = 'complete_grounding' AND m.k = 5) AS n_queries,
    c.state
FROM configs AS c
LEFT JOIN config_metrics AS m
    ON m.corpus = c.corpus AND m.config = c.config AND m.subset IS NULL
GROUP BY ALL
ORDER BY c.corpus, complete_grounding_at_5 DESC NULLS LAST, span_recall_at_5 DESC NULLS LAST, c.config;
