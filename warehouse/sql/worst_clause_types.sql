-- Which kinds of clause does each configuration find worst?
--
-- The five clause types with the lowest complete_grounding@5 of each configuration, the worst first
-- (ties: the lower span coverage, then the name). Look at n_queries before drawing a conclusion: a
-- type with one or two queries is an anecdote. Rankings that are less than 5 deep have no row.
WITH by_type AS (
    SELECT
        corpus,
        config,
        clause_type,
        max(n_queries) FILTER (metric = 'complete_grounding' AND k = 5) AS n_queries,
        max(value) FILTER (metric = 'complete_grounding' AND k = 5) AS complete_grounding_at_5,
        max(value) FILTER (metric = 'span_coverage' AND k = 5) AS span_coverage_at_5,
        max(value) FILTER (metric = 'mrr') AS mrr
    FROM clause_type_metrics
    GROUP BY ALL
)
SELECT *
FROM by_type
WHERE complete_grounding_at_5 IS NOT NULL
QUALIFY row_number() OVER (
    PARTITION BY corpus, config
    ORDER BY complete_grounding_at_5, span_coverage_at_5, clause_type
) <= 5
ORDER BY corpus, config, complete_grounding_at_5, span_coverage_at_5, clause_type;
