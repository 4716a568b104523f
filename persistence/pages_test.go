package persistence

import (
	"database/sql"
	"encoding/binary"
	"testing"
)

// pages reads the b-trees of a database file: https://www.sqlite.org/fileformat.html. Its pages have no reserved bytes.
type pages struct {
	file []byte
	size int
	rows []int // offsets of the bytes of rows: their sizes, numbers and payloads
}

// rowBytes are the offsets of all bytes of a database file that belong to rows of tables of ours.
func rowBytes(t *testing.T, file []byte, db *sql.DB) []int {
	t.Helper()
	p := &pages{file: file, size: int(binary.BigEndian.Uint16(file[16:]))}
	rows := must(db.QueryContext(t.Context(), "SELECT rootpage FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"))
	for _, root := range must(collect(rows, func(rows *sql.Rows, n *int) error { return rows.Scan(n) })) {
		p.tree(root)
	}
	if len(p.rows) < 10_000 {
		t.Fatalf("found %d bytes of rows only", len(p.rows))
	}
	return p.rows
}

func (p *pages) tree(number int) {
	base := (number - 1) * p.size
	page := p.file[base : base+p.size]
	kind := page[0]
	cells, pointers := int(binary.BigEndian.Uint16(page[3:])), 8
	if kind == 2 || kind == 5 { // not a leaf
		p.tree(int(binary.BigEndian.Uint32(page[8:])))
		pointers = 12
	}
	for i := range cells {
		cell := int(binary.BigEndian.Uint16(page[pointers+2*i:]))
		if kind == 2 || kind == 5 {
			p.tree(int(binary.BigEndian.Uint32(page[cell:])))
			cell += 4
		}
		if kind != 5 {
			p.cell(base, cell, kind == 13)
		}
	}
}

// cell notes the bytes of a cell that holds a row.
func (p *pages) cell(base, at int, table bool) {
	from := at
	payload, n := varint(p.file[base+at:])
	at += n
	most, least := (p.size-12)*64/255-23, (p.size-12)*32/255-23
	if table {
		_, n := varint(p.file[base+at:])
		at += n
		most = p.size - 35
	}
	local := payload
	if payload > most {
		if local = least + (payload-least)%(p.size-4); local > most {
			local = least
		}
		p.overflow(int(binary.BigEndian.Uint32(p.file[base+at+local:])), payload-local)
	}
	p.note(base+from, at-from+local)
}

func (p *pages) overflow(page, rest int) {
	for rest > 0 {
		base := (page - 1) * p.size
		here := min(rest, p.size-4)
		p.note(base+4, here)
		page, rest = int(binary.BigEndian.Uint32(p.file[base:])), rest-here
	}
}

func (p *pages) note(from, count int) {
	for i := range count {
		p.rows = append(p.rows, from+i)
	}
}

func varint(data []byte) (value, size int) {
	for i := range 8 {
		value = value<<7 | int(data[i]&0x7f)
		if data[i] < 0x80 {
			return value, i + 1
		}
	}
	return value<<8 | int(data[8]), 9
}
