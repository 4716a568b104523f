package files

import (
	"slices"
	"strings"
)

// List is the files and directories of a workspace at one moment. It is never
// changed, and safe for concurrent use.
type List struct {
	entries []entry
	// Cut says that the workspace has more entries than the list.
	Cut bool
}

// entry is a path, prepared for Find.
type entry struct {
	path   string
	folded string // in lower case
	base   int    // index of the last name in folded
	depth  int    // number of directories above
	has    uint64 // set of the characters of folded
}

// newList prepares paths for Find. That of a directory ends with a slash. The prepared paths
// lie in memory one after another, because looking at all of them takes most of the
// time.
func newList(paths []string, cut bool) *List {
	slices.Sort(paths)
	all := strings.ToLower(strings.Join(paths, "\n"))
	l := &List{entries: make([]entry, len(paths)), Cut: cut}
	for i, p := range paths {
		folded, rest, _ := strings.Cut(all, "\n")
		base := strings.LastIndexByte(strings.TrimSuffix(folded, "/"), '/') + 1
		l.entries[i], all = entry{p, folded, base, strings.Count(folded[:base], "/"), letters(folded)}, rest
	}
	return l
}

// letters returns the set of the bytes of a text, in 64 classes.
func letters(text string) (set uint64) {
	for i := range len(text) {
		set |= 1 << (text[i] & 63)
	}
	return set
}

// Finder finds paths of a list while a person types. It remembers the last query, so
// that one more letter only has to look at what was found before. A Finder is not
// safe for concurrent use.
type Finder struct {
	list  *List
	query string
	hits  []int32 // entries that match query, if it is not empty
}

// NewFinder returns a Finder for a list.
func NewFinder(l *List) *Finder { return &Finder{list: l} }

// List returns the list of the finder.
func (f *Finder) List() *List { return f.list }

// Find returns the paths that match a query, the best first, at most most of them.
// A path matches if it has the characters of the query in their order; case does not
// count. Entries come first whose name is the query, with or without a suffix such as .go, and those whose
// directory and the beginning of whose name are the query. Then come names that begin with it, names and paths that have it in one piece, and the
// rest; in each group, those of the upper directories. The path of a directory
// ends with a slash, and does not match itself, so that its entries come first. An
// empty query finds only the entries of the top directory.
func (f *Finder) Find(query string, most int) []string {
	query = strings.ToLower(query)
	best := ranking{most: most}
	has := letters(query)
	f.narrow(query, func(i int32) bool {
		e := &f.list.entries[i]
		if e.has&has != has {
			return false
		}
		rank, ok := e.rank(query)
		if ok {
			best.add(rank<<indexBits | uint64(i))
		}
		return ok
	})
	paths := make([]string, len(best.keys))
	for n, key := range best.keys {
		paths[n] = f.list.entries[key&(1<<indexBits-1)].path
	}
	return paths
}

// narrow calls match for each entry that may match a query, and remembers those that
// do.
func (f *Finder) narrow(query string, match func(int32) bool) {
	if f.query == "" || !strings.HasPrefix(query, f.query) {
		f.hits = slices.Grow(f.hits[:0], len(f.list.entries))
		for i := range f.list.entries {
			f.hits = append(f.hits, int32(i))
		}
	}
	found := f.hits[:0]
	for _, i := range f.hits {
		if match(i) {
			found = append(found, i)
		}
	}
	f.query, f.hits = query, found
}

// indexBits is the number of bits of an index into a list; mostEntries fits into them.
const indexBits = 18

// Classes of matches, the best first.
const (
	nameIs = iota
	pathBegins
	nameBegins
	nameHas
	pathHas
	nameScattered
	pathScattered
)

// rank returns how well an entry matches a query, and whether it does. A better match has
// a lower rank, of at most 46 bits: the class, how far the characters are apart or how many
// directories are above, and the length.
func (e *entry) rank(query string) (rank uint64, ok bool) {
	name := e.folded[e.base:]
	switch {
	case len(query) == e.base && strings.HasPrefix(e.folded, query):
		return e.listed(), true
	case query == "" || strings.HasSuffix(query, "/") && e.folded == query:
		return 0, false
	case e.named(query):
		return e.ranked(nameIs, e.depth), true
	case len(query) > e.base && strings.HasPrefix(e.folded, query):
		return e.ranked(pathBegins, 0), true
	case strings.HasPrefix(name, query):
		return e.ranked(nameBegins, e.depth), true
	case strings.Contains(name, query):
		return e.ranked(nameHas, e.depth), true
	case strings.HasPrefix(e.folded, query) || strings.Contains(e.folded, query):
		return e.ranked(pathHas, e.depth), true
	}
	if span := spread(name, query); span > 0 {
		return e.ranked(nameScattered, span), true
	}
	span := spread(e.folded, query)
	return e.ranked(pathScattered, span), span > 0
}

// named reports whether the name of an entry is a text, apart from a suffix such as .go.
func (e *entry) named(text string) bool {
	rest, ok := strings.CutPrefix(e.folded[e.base:], text)
	return ok && (rest == "" || rest == "/" || rest[0] == '.')
}

// ranked packs the parts of a rank.
func (e *entry) ranked(class, apart int) uint64 {
	return uint64(class)<<32 | uint64(min(apart, 1<<16-1))<<16 | uint64(min(len(e.folded), 1<<16-1))
}

// listed returns the rank of an entry among those of its directory, in the order of their names: hidden ones
// come last.
func (e *entry) listed() uint64 {
	if strings.HasPrefix(e.folded[e.base:], ".") {
		return 1
	}
	return 0
}

// spread returns the length of the part of text that has the characters of query in
// their order, seen from the end of text; 0: there is none.
func spread(text, query string) int {
	i, end := len(text), 0
	for n := len(query) - 1; n >= 0; n-- {
		i = strings.LastIndexByte(text[:i], query[n])
		if i < 0 {
			return 0
		}
		if n == len(query)-1 {
			end = i + 1
		}
	}
	return end - i
}

// ranking keeps the lowest keys.
type ranking struct {
	most int
	keys []uint64 // sorted
}

// add adds a key, unless there are enough lower ones.
func (r *ranking) add(key uint64) {
	if len(r.keys) == r.most {
		if r.most == 0 || key > r.keys[len(r.keys)-1] {
			return
		}
		r.keys = r.keys[:len(r.keys)-1]
	}
	i, _ := slices.BinarySearch(r.keys, key)
	r.keys = slices.Insert(r.keys, i, key)
}
