-- Which gold spans does a chunker cut apart?
--
-- One row for each gold span that no single chunk of the chunker holds whole, with the number of
-- chunks that share it and the largest share of it that one chunk holds. To bring all of such a span,
-- a retriever must bring several chunks. (A span that is touched by two overlapping chunks and whole
-- in one of them is not listed.)
WITH pieces AS (
    SELECT
        g.corpus,
        c.chunker,
        g.query_id,
        g.span_no,
        g.doc_id,
        g.start_char,
        g.end_char,
        count(*) AS chunks,
        max(least(g.end_char, c.end_char) - greatest(g.start_char, c.start_char)) AS longest_piece
    FROM gold_spans AS g
    JOIN chunks AS c
        ON c.corpus = g.corpus
        AND c.doc_id = g.doc_id
        AND c.start_char < g.end_char
        AND g.start_char < c.end_char
    GROUP BY ALL
)
SELECT
    p.corpus,
    p.chunker,
    p.query_id,
    q.clause_type,
    p.span_no,
    p.doc_id,
    p.start_char,
    p.end_char,
    p.chunks,
    p.longest_piece / (p.end_char - p.start_char) AS largest_share_in_one_chunk
FROM pieces AS p
JOIN queries AS q ON q.corpus = p.corpus AND q.query_id = p.query_id
WHERE p.longest_piece < p.end_char - p.start_char
ORDER BY p.corpus, p.chunker, largest_share_in_one_chunk, p.query_id, p.span_no;
