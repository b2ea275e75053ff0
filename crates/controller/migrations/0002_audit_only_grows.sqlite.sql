CREATE TRIGGER audit_not_changed BEFORE UPDATE ON audit BEGIN
    SELECT RAISE(ABORT, 'the audit log only grows');
END;
CREATE TRIGGER audit_not_removed BEFORE DELETE ON audit BEGIN
    SELECT RAISE(ABORT, 'the audit log only grows');
END;
