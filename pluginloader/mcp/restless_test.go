//go:build unix

package mcp_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"lashd/test/wait"
)

func TestRestlessServer(t *testing.T) {
	file := filepath.Join(t.TempDir(), "lists")
	one(t, guest("restless", countVariable, file))
	var lists []string
	wait.Until(t, "five lists", func() bool {
		data, _ := os.ReadFile(file)
		lists = strings.Fields(string(data))
		return len(lists) >= 5
	})
	at := func(n int) int {
		ms, err := strconv.Atoi(lists[n])
		if err != nil {
			t.Fatal(err)
		}
		return ms
	}
	if took := at(4) - at(1); took < 2_500 { // the second may follow the first at once
		t.Errorf("part13/6 a server that reports a change after each list was asked for three more lists in %d ms", took)
	}
}
