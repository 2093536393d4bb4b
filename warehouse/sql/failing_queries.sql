-- Which queries failed, why, and which words did they miss?
--
-- One row for each gold span under 50 % of a failing query. `label` is the first cause that holds and
-- `lever` what it points at (none for ceiling-bound). covered_share says how much of the span was in
-- the top 5 all the same; missed_text is the whole span, not only the part that was missed.
SELECT
    f.corpus,
    f.config,
    f.query_id,
    q.clause_type,
    f.label,
    f.lever,
    o.span_no,
    o.doc_id,
    o.start_char,
    o.end_char,
    o.covered_chars / (o.end_char - o.start_char) AS covered_share,
    q.query,
    g.text AS missed_text
FROM failure_labels AS f
JOIN queries AS q ON q.corpus = f.corpus AND q.query_id = f.query_id
JOIN span_outcomes AS o
    ON o.corpus = f.corpus AND o.config = f.config AND o.query_id = f.query_id AND o.k = 5
JOIN gold_spans AS g
    ON g.corpus = o.corpus AND g.query_id = o.query_id AND g.span_no = o.span_no
WHERE 2 * o.covered_chars < o.end_char - o.start_char
ORDER BY f.corpus, f.config, f.query_id, o.span_no;
