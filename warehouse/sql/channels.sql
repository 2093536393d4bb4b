-- In hybrid configurations, which retriever brought the relevant chunks of the top 5?
--
-- Relevant chunks (of a gold span's document, sharing a character with it) in the top 5, by the list
-- they were in: both, only the dense one, only the BM25 one. What only one of them brings is lost
-- when the other works alone. Rankings that are less than 5 deep have no top 5, and no row.
WITH relevant AS (
    SELECT DISTINCT r.corpus, r.config, r.query_id, r.chunk_id, r.dense_rank, r.bm25_rank
    FROM rankings AS r
    JOIN configs AS c ON c.corpus = r.corpus AND c.config = r.config AND c.retriever = 'hybrid'
    JOIN gold_spans AS g
        ON g.corpus = r.corpus
        AND g.query_id = r.query_id
        AND g.doc_id = r.doc_id
        AND g.start_char < r.end_char
        AND r.start_char < g.end_char
    WHERE r.rank <= 5
        AND EXISTS (
            SELECT 1 FROM span_outcomes AS o
            WHERE o.corpus = r.corpus AND o.config = r.config AND o.k = 5
        )
)
SELECT
    corpus,
    config,
    count(*) AS relevant_chunks,
    count(*) FILTER (dense_rank IS NOT NULL AND bm25_rank IS NOT NULL) AS in_both,
    count(*) FILTER (dense_rank IS NOT NULL AND bm25_rank IS NULL) AS dense_only,
    count(*) FILTER (dense_rank IS NULL AND bm25_rank IS NOT NULL) AS bm25_only
FROM relevant
GROUP BY corpus, config
ORDER BY corpus, config;
