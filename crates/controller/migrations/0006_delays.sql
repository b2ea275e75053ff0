-- Sums of the admission test by delay, and also as the link counts; hops keep delays in place of positions of delay classes. What a store
-- from before has is counted anew in the same transaction.
DROP TABLE class_sums;
CREATE TABLE class_sums (
    link TEXT_C NOT NULL,
    direction BIGINT NOT NULL,
    delay_ns BIGINT NOT NULL,
    slices BIGINT NOT NULL,
    rate_bps BIGINT NOT NULL,
    burst_bytes BIGINT NOT NULL,
    link_rate_bps BIGINT NOT NULL,
    link_burst_bytes BIGINT NOT NULL,
    PRIMARY KEY (link, direction, delay_ns)
);
ALTER TABLE slice_hops RENAME COLUMN class_forward TO delay_forward_ns;
ALTER TABLE slice_hops RENAME COLUMN class_backward TO delay_backward_ns;
