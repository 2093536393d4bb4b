-- Which queries does no configuration ground?
--
-- Queries that fail in every measured configuration, with the labels they got. No lever that was tried
-- helps them: read their gold spans before trying another one.
WITH outcomes AS (
    SELECT corpus, query_id, config, value
    FROM query_metrics
    WHERE metric = 'complete_grounding' AND k = 5
)
SELECT
    o.corpus,
    o.query_id,
    q.clause_type,
    q.doc_id,
    count(*) AS configurations,
    list(DISTINCT f.label ORDER BY f.label) FILTER (f.label IS NOT NULL) AS labels,
    q.query
FROM outcomes AS o
JOIN queries AS q ON q.corpus = o.corpus AND q.query_id = o.query_id
LEFT JOIN failure_labels AS f
    ON f.corpus = o.corpus AND f.config = o.config AND f.query_id = o.query_id
GROUP BY o.corpus, o.query_id, q.clause_type, q.doc_id, q.query
HAVING max(o.value) = 0
ORDER BY o.corpus, o.query_id;
