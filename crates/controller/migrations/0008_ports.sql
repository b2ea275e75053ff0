-- Port ranges by the smallest aligned block of 2^k ports that holds them (slices/ranges.rs): the bits in which the two ends differ, all below them, then the number of the block.
ALTER TABLE slice_matches ADD COLUMN source_port_block BIGINT NOT NULL DEFAULT -1;
ALTER TABLE slice_matches ADD COLUMN destination_port_block BIGINT NOT NULL DEFAULT -1;
UPDATE slice_matches SET
    source_port_block = (source_port_low | source_port_high) - (source_port_low & source_port_high),
    destination_port_block = (destination_port_low | destination_port_high) - (destination_port_low & destination_port_high);
UPDATE slice_matches SET source_port_block = source_port_block | (source_port_block >> 1),
    destination_port_block = destination_port_block | (destination_port_block >> 1);
UPDATE slice_matches SET source_port_block = source_port_block | (source_port_block >> 2),
    destination_port_block = destination_port_block | (destination_port_block >> 2);
UPDATE slice_matches SET source_port_block = source_port_block | (source_port_block >> 4),
    destination_port_block = destination_port_block | (destination_port_block >> 4);
UPDATE slice_matches SET source_port_block = source_port_block | (source_port_block >> 8),
    destination_port_block = destination_port_block | (destination_port_block >> 8);
UPDATE slice_matches SET
    source_port_block = source_port_low / (source_port_block + 1) * (source_port_block + 1) * 2 + source_port_block
    WHERE source_port_low >= 0;
UPDATE slice_matches SET
    destination_port_block = destination_port_low / (destination_port_block + 1) * (destination_port_block + 1) * 2 + destination_port_block
    WHERE destination_port_low >= 0;
UPDATE slice_matches SET source_port_block = -1 WHERE source_port_low < 0;
UPDATE slice_matches SET destination_port_block = -1 WHERE destination_port_low < 0;
CREATE INDEX slice_matches_by_source_port ON slice_matches (link, source_port_block, protocol, vlan);
CREATE INDEX slice_matches_by_destination_port ON slice_matches (link, destination_port_block, protocol, vlan);
CREATE INDEX slice_matches_by_inner_tag ON slice_matches (link, inner_vlan, vlan);
CREATE INDEX slice_matches_by_dscp ON slice_matches (link, dscp, protocol, vlan);
CREATE INDEX slice_matches_by_protocol ON slice_matches (link, protocol, dscp, vlan);
