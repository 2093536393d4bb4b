-- How much of the top 5 comes from a document that holds no answer?
--
-- For each configuration: chunks in the top 5 of all queries, those from a document without a gold
-- span of the query, and the queries whose top 5 holds nothing but such chunks. With a document scope
-- this is zero for queries whose answers are in the document asked about. Rankings that are less than
-- 5 deep have no top 5, and no row.
WITH top AS (
    SELECT
        r.corpus,
        r.config,
        r.query_id,
        r.doc_id NOT IN (
            SELECT g.doc_id FROM gold_spans AS g
            WHERE g.corpus = r.corpus AND g.query_id = r.query_id
        ) AS wrong
    FROM rankings AS r
    WHERE r.rank <= 5
        AND EXISTS (
            SELECT 1 FROM span_outcomes AS o
            WHERE o.corpus = r.corpus AND o.config = r.config AND o.k = 5
        )
),
by_query AS (
    SELECT corpus, config, query_id, count(*) AS chunks, count(*) FILTER (wrong) AS wrong_chunks
    FROM top
    GROUP BY ALL
)
SELECT
    corpus,
    config,
    CAST(sum(chunks) AS BIGINT) AS chunks_in_top_5,
    CAST(sum(wrong_chunks) AS BIGINT) AS wrong_chunks,
    sum(wrong_chunks) / sum(chunks) AS wrong_share,
    count(*) FILTER (wrong_chunks = chunks) AS queries_with_wrong_ones_only
FROM by_query
GROUP BY corpus, config
ORDER BY corpus, wrong_share DESC, config;
