package watch

import "time"

// arm watches all directories of a root, or reads their signature if the root is polled. It reports
// whether it found anything that was not watched before, or that has changed. A polled root stays
// polled until again is true.
func (l *loop) arm(r *root, again bool) (news bool) {
	begin := time.Now()
	defer func() { r.looked(begin, time.Now()) }()
	if !r.polling || again {
		news = l.place(r)
	}
	status := RootStatus{Root: r.dir, Mode: Events, Reason: r.reason, Dirs: len(r.places)}
	if r.polling {
		status.Mode = Polling
		signature := l.config.Limits.of(r.bounds).signRoot(r.dir, r.bounds)
		news = news || signature != r.signature
		r.signature = signature
	}
	l.w.report(status)
	return news
}

// place watches all directories of a root and stops watching those that no longer belong to it. If
// one watch fails, the root is polled instead.
func (l *loop) place(r *root) (news bool) {
	before := r.polling
	places, beyond, news, err := l.find(r.dir, r.bounds)
	r.polling, r.reason = err != nil, beyond
	gone := r.places
	r.places = places
	if err != nil {
		r.reason, r.places = err.Error(), nil
		l.release(places)
	}
	l.release(gone)
	return news || r.polling != before
}

// find watches the directories of a root. beyond says which part exceeds the limits; empty: none.
func (l *loop) find(dir string, b Bounds) (places map[string]names, beyond string, news bool, err error) {
	if l.notes == nil {
		return nil, "", false, l.without
	}
	p := placing{
		limits: l.config.Limits.of(b), bounds: b, skip: l.config.Skip, notes: l.notes, live: l.notes.live(),
		places: map[string]names{},
	}
	p.left = p.limits.Total
	err = p.root(dir)
	return p.places, p.beyond, p.news, err
}

// release stops watching directories that no root uses any more.
func (l *loop) release(places map[string]names) {
	for dir := range places {
		if l.notes != nil && !l.used(dir) {
			l.notes.remove(dir)
		}
	}
}

// used reports whether any root has the directory.
func (l *loop) used(dir string) bool {
	for _, r := range l.roots {
		if _, used := r.places[dir]; used {
			return true
		}
	}
	return false
}
