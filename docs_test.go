package lashd_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	link    = regexp.MustCompile(`\]\(([^)#\s]*)(?:#([^)\s]*))?\)`)
	heading = regexp.MustCompile(`(?m)^#+ (.*)$`)
	dropped = regexp.MustCompile(`[^\w\- ]`) // characters that GitHub omits from anchors
)

// pages returns the paths of the README and of all pages in docs.
func pages(t *testing.T) []string {
	t.Helper()
	all := []string{"README.md"}
	for _, pattern := range []string{"docs/*.md", "docs/*/*.md"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, found...)
	}
	return all
}

func TestLinksOfDocsHaveTargets(t *testing.T) {
	for _, page := range pages(t) {
		for _, target := range link.FindAllStringSubmatch(readPage(t, page), -1) {
			file, anchor := page, target[2]
			if target[1] != "" {
				file = filepath.Join(filepath.Dir(page), target[1])
			}
			switch _, err := os.Stat(file); {
			case strings.HasPrefix(target[1], "http"):
			case err != nil:
				t.Errorf("%s links to %s, which does not exist", page, target[1])
			case anchor != "" && !slices.Contains(anchors(t, file), anchor):
				t.Errorf("%s links to %s#%s, which has no such heading", page, target[1], anchor)
			}
		}
	}
}

// anchors returns the anchors that GitHub gives to the headings of a page.
func anchors(t *testing.T, page string) (all []string) {
	t.Helper()
	for _, h := range heading.FindAllStringSubmatch(readPage(t, page), -1) {
		all = append(all, strings.ReplaceAll(dropped.ReplaceAllString(strings.ToLower(h[1]), ""), " ", "-"))
	}
	return all
}

func TestStartPageListsAllPages(t *testing.T) {
	start := readPage(t, "docs/README.md")
	for _, page := range pages(t)[1:] {
		name := strings.TrimPrefix(page, "docs/")
		if !strings.HasPrefix(name, "adr/") && name != "README.md" && !strings.Contains(start, "("+name) {
			t.Errorf("docs/README.md does not link to %s", name)
		}
	}
}

func TestReadmeIsShort(t *testing.T) {
	if lines := strings.Count(readPage(t, "README.md"), "\n"); lines >= 150 {
		t.Errorf("README.md has %d lines, want fewer than 150", lines)
	}
}

func readPage(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
