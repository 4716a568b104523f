package attachment

import (
	"bytes"
	"encoding/binary"

	"lashd/rpc/protocol"
)

// Tokens that models take for files, by the vendors' documentation. Servers scale larger images down.
const (
	pixelsPerToken = 750
	minImageTokens = 85
	maxImageTokens = 1600
	pageTokens     = 2000 // text and picture of a page
	pageBytes      = 100 << 10
	maxPages       = 600 // the most that an API takes
)

// Tokens estimates how many tokens contents take. mediaType is the checked type. The contents are not decoded.
func Tokens(mediaType string, data []byte) int64 {
	if mediaType == PDF {
		return pageTokens * int64(pages(data))
	}
	if w, h := dimensions(data); w > 0 {
		return min(max(int64(w)*int64(h)/pixelsPerToken, minImageTokens), maxImageTokens)
	}
	return int64(len(data)+protocol.BytesPerToken-1) / protocol.BytesPerToken
}

// pages estimates the number of pages of a PDF document. Pages in compressed objects cannot be counted, so a document has at
// least one page for each pageBytes. lashd never decompresses a document.
func pages(data []byte) int {
	n := 0
	for _, name := range []string{"/Type/Page", "/Type /Page"} {
		n += bytes.Count(data, []byte(name)) - bytes.Count(data, []byte(name+"s"))
	}
	return min(max(n, 1+len(data)/pageBytes), maxPages)
}

// dimensions returns the width and height in the header of an image, in pixels. Both are 0 if the header is damaged, or if data is
// not an image. It reads no further than the header and does not decode pixels.
func dimensions(data []byte) (width, height int) {
	switch {
	case begins(data, "\x89PNG\r\n\x1a\n....IHDR") && len(data) >= 24:
		width, height = int(binary.BigEndian.Uint32(data[16:])), int(binary.BigEndian.Uint32(data[20:]))
	case begins(data, "GIF8") && len(data) >= 10:
		width, height = int(binary.LittleEndian.Uint16(data[6:])), int(binary.LittleEndian.Uint16(data[8:]))
	case begins(data, "\xff\xd8"):
		width, height = jpegSize(data[2:])
	case begins(data, "RIFF....WEBP") && len(data) >= 30:
		width, height = webpSize(data)
	}
	if width <= 0 || height <= 0 {
		return 0, 0
	}
	return width, height
}

// jpegSize returns the dimensions of a JPEG image without its first marker, 0 if there are none. It skips segments until the first
// one that begins a frame.
func jpegSize(data []byte) (width, height int) {
	for len(data) >= 9 && data[0] == 0xff {
		marker := data[1]
		switch {
		case marker == 0xff: // padding
			data = data[1:]
			continue
		case marker == 0x01, marker >= 0xd0 && marker <= 0xd7: // no contents
			data = data[2:]
			continue
		case marker >= 0xc0 && marker <= 0xcf && marker != 0xc4 && marker != 0xc8 && marker != 0xcc:
			return int(binary.BigEndian.Uint16(data[7:])), int(binary.BigEndian.Uint16(data[5:]))
		}
		size := 2 + int(binary.BigEndian.Uint16(data[2:]))
		if size < 4 || size > len(data) {
			return 0, 0
		}
		data = data[size:]
	}
	return 0, 0
}

// webpSize returns the dimensions of a WebP image of at least 30 bytes: a lossy one, a lossless one, or one with extensions.
func webpSize(data []byte) (width, height int) {
	switch string(data[12:16]) {
	case "VP8 ":
		if string(data[23:26]) != "\x9d\x01\x2a" {
			return 0, 0
		}
		return int(binary.LittleEndian.Uint16(data[26:]) & 0x3fff), int(binary.LittleEndian.Uint16(data[28:]) & 0x3fff)
	case "VP8L":
		bits := binary.LittleEndian.Uint32(data[21:])
		return 1 + int(bits&0x3fff), 1 + int(bits>>14&0x3fff)
	case "VP8X":
		return 1 + uint24(data[24:]), 1 + uint24(data[27:])
	}
	return 0, 0
}

// uint24 returns the first three bytes as a number, the lowest byte first.
func uint24(b []byte) int { return int(b[0]) | int(b[1])<<8 | int(b[2])<<16 }
