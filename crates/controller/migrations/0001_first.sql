-- TEXT_C: text that is compared byte by byte, in both stores. Numbers that are absent are -1, texts that are absent are empty.

CREATE TABLE state (
    id BIGINT PRIMARY KEY,
    generation BIGINT NOT NULL,
    event BIGINT NOT NULL,
    audit BIGINT NOT NULL
);
INSERT INTO state (id, generation, event, audit) VALUES (1, 0, 0, 0);

CREATE TABLE gateways (
    name TEXT_C PRIMARY KEY,
    acknowledged BIGINT NOT NULL,
    seen_at_ms BIGINT NOT NULL,
    connected BIGINT NOT NULL
);

CREATE TABLE links (
    name TEXT_C PRIMARY KEY,
    gateway TEXT_C NOT NULL,
    announcement TEXT NOT NULL
);
CREATE INDEX links_by_gateway ON links (gateway);

-- Sums of the admission test.
CREATE TABLE class_sums (
    link TEXT_C NOT NULL,
    direction BIGINT NOT NULL,
    class BIGINT NOT NULL,
    slices BIGINT NOT NULL,
    rate_bps BIGINT NOT NULL,
    burst_bytes BIGINT NOT NULL,
    PRIMARY KEY (link, direction, class)
);

CREATE TABLE tenants (
    name TEXT_C PRIMARY KEY,
    weight BIGINT NOT NULL,
    most_slices BIGINT NOT NULL,
    most_rate_bps BIGINT NOT NULL,
    slices BIGINT NOT NULL,
    rate_bps BIGINT NOT NULL
);
INSERT INTO tenants (name, weight, most_slices, most_rate_bps, slices, rate_bps) VALUES ('default', 1, -1, -1, 0, 0);

CREATE TABLE slices (
    name TEXT_C PRIMARY KEY,
    tenant TEXT_C NOT NULL,
    state TEXT_C NOT NULL,
    generation BIGINT NOT NULL,
    body TEXT NOT NULL,
    bound_forward_ns BIGINT NOT NULL,
    bound_backward_ns BIGINT NOT NULL,
    created_by TEXT NOT NULL,
    created_at_ms BIGINT NOT NULL,
    changed_at_ms BIGINT NOT NULL
);
CREATE INDEX slices_by_tenant ON slices (tenant, name);
CREATE INDEX slices_by_state ON slices (state, name);

CREATE TABLE slice_hops (
    slice TEXT_C NOT NULL,
    hop BIGINT NOT NULL,
    link TEXT_C NOT NULL,
    gateway TEXT_C NOT NULL,
    generation BIGINT NOT NULL,
    class_forward BIGINT NOT NULL,
    class_backward BIGINT NOT NULL,
    draining BIGINT NOT NULL,
    acknowledged BIGINT NOT NULL,
    problem TEXT NOT NULL,
    PRIMARY KEY (slice, hop)
);
CREATE INDEX slice_hops_by_link ON slice_hops (link, slice);
CREATE INDEX slice_hops_by_gateway ON slice_hops (gateway, acknowledged, generation);
CREATE INDEX slice_hops_by_acknowledged ON slice_hops (acknowledged, slice);

-- Header fields as ranges, to find two slices that have a packet in common.
CREATE TABLE slice_matches (
    link TEXT_C NOT NULL,
    slice TEXT_C NOT NULL,
    position BIGINT NOT NULL,
    in_forward BIGINT NOT NULL,
    in_backward BIGINT NOT NULL,
    ip_version BIGINT NOT NULL,
    source_low TEXT_C NOT NULL,
    source_high TEXT_C NOT NULL,
    destination_low TEXT_C NOT NULL,
    destination_high TEXT_C NOT NULL,
    protocol BIGINT NOT NULL,
    source_port_low BIGINT NOT NULL,
    source_port_high BIGINT NOT NULL,
    destination_port_low BIGINT NOT NULL,
    destination_port_high BIGINT NOT NULL,
    dscp BIGINT NOT NULL,
    vlan BIGINT NOT NULL,
    inner_vlan BIGINT NOT NULL,
    teid BIGINT NOT NULL,
    PRIMARY KEY (link, slice, position)
);
CREATE INDEX slice_matches_by_slice ON slice_matches (slice);
CREATE INDEX slice_matches_by_destination ON slice_matches (link, destination_low, vlan, inner_vlan, teid);
CREATE INDEX slice_matches_by_source ON slice_matches (link, source_low, vlan, inner_vlan, teid);
CREATE INDEX slice_matches_by_tag ON slice_matches (link, vlan, inner_vlan, teid);
CREATE INDEX slice_matches_by_tunnel ON slice_matches (link, teid, vlan, inner_vlan);

CREATE TABLE generations (
    generation BIGINT PRIMARY KEY,
    at_ms BIGINT NOT NULL,
    actor TEXT NOT NULL,
    reason TEXT NOT NULL
);

CREATE TABLE changes (
    generation BIGINT NOT NULL,
    position BIGINT NOT NULL,
    slice TEXT_C NOT NULL,
    tenant TEXT_C NOT NULL,
    before_body TEXT NOT NULL,
    after_body TEXT NOT NULL,
    PRIMARY KEY (generation, position)
);
CREATE INDEX changes_by_tenant ON changes (tenant, generation);

-- What gateways have to carry out; an empty body removes.
CREATE TABLE gateway_changes (
    gateway TEXT_C NOT NULL,
    generation BIGINT NOT NULL,
    position BIGINT NOT NULL,
    slice TEXT_C NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (gateway, generation, position)
);

CREATE TABLE events (
    number BIGINT PRIMARY KEY,
    at_ms BIGINT NOT NULL,
    kind TEXT_C NOT NULL,
    slice TEXT_C NOT NULL,
    tenant TEXT_C NOT NULL,
    gateway TEXT_C NOT NULL,
    generation BIGINT NOT NULL,
    actor TEXT NOT NULL,
    reason TEXT NOT NULL
);
CREATE INDEX events_by_tenant ON events (tenant, number);

CREATE TABLE tokens (
    name TEXT_C PRIMARY KEY,
    hash TEXT_C NOT NULL UNIQUE,
    scope TEXT_C NOT NULL,
    created_at_ms BIGINT NOT NULL,
    created_by TEXT NOT NULL
);

CREATE TABLE audit (
    number BIGINT PRIMARY KEY,
    at_ms BIGINT NOT NULL,
    actor TEXT NOT NULL,
    request TEXT NOT NULL,
    status BIGINT NOT NULL,
    detail TEXT NOT NULL
);

CREATE TABLE idempotency (
    actor TEXT_C NOT NULL,
    idempotency_key TEXT_C NOT NULL,
    request_hash TEXT_C NOT NULL,
    at_ms BIGINT NOT NULL,
    status BIGINT NOT NULL,
    version BIGINT NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (actor, idempotency_key)
);
CREATE INDEX idempotency_by_time ON idempotency (at_ms);

CREATE TABLE counters (
    gateway TEXT_C PRIMARY KEY,
    at_ms BIGINT NOT NULL,
    body TEXT NOT NULL
);

CREATE TABLE flow_interests (
    slice TEXT_C PRIMARY KEY,
    until_ms BIGINT NOT NULL
);
