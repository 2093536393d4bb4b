-- Which queries did hybrid retrieval fix, and which did it break, against dense retrieval?
--
-- For every pair of configurations, dense and hybrid, that differ in nothing else: the queries
-- that are grounded in one of the two only. `fixed` is grounded with hybrid and not with dense,
-- `broken` the other way round. first_relevant_* is the rank of the first relevant chunk, null where
-- none is in the list.
WITH pairs AS (
    SELECT p.corpus, d.config AS dense_config, h.config AS hybrid_config
    FROM config_pairs AS p
    JOIN configs AS d ON d.corpus = p.corpus AND d.config = p.from_config
    JOIN configs AS h ON h.corpus = p.corpus AND h.config = p.to_config
    WHERE d.retriever = 'dense' AND h.retriever = 'hybrid'
),
outcomes AS (
    SELECT
        corpus,
        config,
        query_id,
        max(value) FILTER (metric = 'complete_grounding' AND k = 5) AS grounded,
        max(value) FILTER (metric = 'mrr') AS mrr
    FROM query_metrics
    GROUP BY ALL
)
SELECT
    p.corpus,
    p.dense_config,
    p.hybrid_config,
    CASE WHEN h.grounded = 1 THEN 'fixed' ELSE 'broken' END AS change,
    q.query_id,
    q.clause_type,
    CAST(round(1 / nullif(d.mrr, 0)) AS BIGINT) AS first_relevant_dense,
    CAST(round(1 / nullif(h.mrr, 0)) AS BIGINT) AS first_relevant_hybrid,
    q.query
FROM pairs AS p
JOIN outcomes AS d ON d.corpus = p.corpus AND d.config = p.dense_config
JOIN outcomes AS h ON h.corpus = p.corpus AND h.config = p.hybrid_config AND h.query_id = d.query_id
JOIN queries AS q ON q.corpus = p.corpus AND q.query_id = d.query_id
WHERE d.grounded <> h.grounded
ORDER BY p.corpus, p.dense_config, p.hybrid_config, change DESC, q.query_id;
