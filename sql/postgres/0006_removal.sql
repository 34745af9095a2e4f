-- What people removed or settled, by time: every gateway that keeps answers in
-- memory looks at the last minutes of it a few times a second. As small as that
-- list is; no other event pays for it.
CREATE INDEX event_removal ON hapax.event (at)
	WHERE what IN ('forgotten', 'resolved_applied', 'resolved_not_applied');
