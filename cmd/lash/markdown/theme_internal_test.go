package markdown

import (
	"math"
	"testing"
)

// rgb returns the color of an index above 15 of the 256 colors.
func rgb(index int) (color [3]float64) {
	if index >= 232 {
		gray := float64(8 + 10*(index-232))
		return [3]float64{gray, gray, gray}
	}
	levels := []float64{0, 95, 135, 175, 215, 255}
	index -= 16
	return [3]float64{levels[index/36], levels[index/6%6], levels[index%6]}
}

// luminance returns the relative luminance of WCAG 2.
func luminance(color [3]float64) float64 {
	linear := func(c float64) float64 {
		if c /= 255; c <= 0.04045 {
			return c / 12.92
		}
		return math.Pow((c+0.055)/1.055, 2.4)
	}
	return 0.2126*linear(color[0]) + 0.7152*linear(color[1]) + 0.0722*linear(color[2])
}

// contrast returns the contrast ratio of WCAG 2.
func contrast(a, b [3]float64) float64 {
	x, y := luminance(a), luminance(b)
	return (max(x, y) + 0.05) / (min(x, y) + 0.05)
}

func TestChecked(t *testing.T) {
	t.Run("part/12 a line that a lexer changes is shown as it is", func(t *testing.T) {
		rows := checked([]row{{{"a", look{role: keyword}}}, {{"c", look{role: keyword}}}}, []string{"a", "b", "d"})
		if got := (Style{Theme: Palette}).lines(rows); len(got) != 3 || got[0] != "\x1b[35ma\x1b[m" || got[1] != "b" || got[2] != "d" {
			t.Errorf("it is %q", got)
		}
	})
}

func TestContrast(t *testing.T) {
	backgrounds := map[Theme]map[string][3]float64{
		Dark: {
			"black": {0, 0, 0}, "VS Code dark": {0x1e, 0x1e, 0x1e}, "One Dark": {0x28, 0x2c, 0x34}, "Solarized dark": {0x00, 0x2b, 0x36},
			"Nord": {0x2e, 0x34, 0x40}, "Dracula": {0x28, 0x2a, 0x36},
		},
		Light: {"white": {255, 255, 255}, "Solarized light": {0xfd, 0xf6, 0xe3}, "One Light": {0xfa, 0xfa, 0xfa}, "Catppuccin Latte": {0xef, 0xf1, 0xf5}, "Gruvbox light": {0xfb, 0xf1, 0xc7}},
	}
	for theme, colors := range map[Theme][roles]int{Dark: dark, Light: light} {
		for name, background := range backgrounds[theme] {
			t.Run("part/12 colors have the contrast of WCAG AA on "+name, func(t *testing.T) {
				for r := muted; r < roles; r++ {
					if c := contrast(rgb(colors[r]), background); colors[r] < 16 || c < 4.5 {
						t.Errorf("color %d of role %d has a contrast of %.2f", colors[r], r, c)
					}
				}
			})
		}
	}
	t.Run("part/12 the contrast of WCAG", func(t *testing.T) {
		if got := contrast(rgb(231), rgb(16)); math.Abs(got-21) > 1e-9 {
			t.Errorf("white on black has a contrast of %f, want 21", got)
		}
	})
}
