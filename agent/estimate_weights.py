"""What each count of `agent.estimate_features` is worth in tokens, by family. Fitted."""

from __future__ import annotations

WEIGHTS: dict[str, tuple[float, ...]] = {
    "claude_old": (
        0.168,  # letters
        0.604,  # words
        0.349,  # long
        0.000,  # digits
        2.489,  # numbers
        0.118,  # spaces
        0.000,  # space_runs
        0.852,  # newlines
        0.489,  # marks
        1.420,  # latin
        0.818,  # greek
        0.516,  # cyrillic
        0.886,  # hebrew
        0.895,  # arabic
        0.750,  # other_two
        1.080,  # indic
        1.056,  # other_three
        1.575,  # general
        0.805,  # kana
        1.255,  # han
        1.525,  # hangul
        1.486,  # wide
        3.556,  # emoji
    ),
    "claude_new": (
        0.291,  # letters
        0.595,  # words
        0.566,  # long
        0.000,  # digits
        2.392,  # numbers
        0.101,  # spaces
        0.000,  # space_runs
        0.804,  # newlines
        0.657,  # marks
        1.448,  # latin
        0.826,  # greek
        0.522,  # cyrillic
        0.890,  # hebrew
        0.897,  # arabic
        0.760,  # other_two
        1.080,  # indic
        1.055,  # other_three
        1.703,  # general
        0.808,  # kana
        1.263,  # han
        1.525,  # hangul
        1.209,  # wide
        3.513,  # emoji
    ),
    "o200k": (
        0.224,  # letters
        0.211,  # words
        0.008,  # long
        0.000,  # digits
        2.508,  # numbers
        0.072,  # spaces
        0.029,  # space_runs
        0.665,  # newlines
        0.396,  # marks
        1.127,  # latin
        0.424,  # greek
        0.367,  # cyrillic
        0.471,  # hebrew
        0.400,  # arabic
        0.285,  # other_two
        0.427,  # indic
        0.458,  # other_three
        0.975,  # general
        0.738,  # kana
        0.940,  # han
        0.762,  # hangul
        0.000,  # wide
        2.180,  # emoji
    ),
    "cl100k": (
        0.246,  # letters
        0.130,  # words
        0.068,  # long
        0.000,  # digits
        2.531,  # numbers
        0.064,  # spaces
        0.133,  # space_runs
        0.459,  # newlines
        0.339,  # marks
        2.009,  # latin
        1.106,  # greek
        0.645,  # cyrillic
        1.253,  # hebrew
        0.980,  # arabic
        2.483,  # other_two
        1.507,  # indic
        2.060,  # other_three
        1.128,  # general
        0.946,  # kana
        1.263,  # han
        1.215,  # hangul
        0.000,  # wide
        2.979,  # emoji
    ),
    "qwen": (
        0.272,  # letters
        0.000,  # words
        0.026,  # long
        0.521,  # digits
        2.584,  # numbers
        0.063,  # spaces
        0.178,  # space_runs
        0.358,  # newlines
        0.333,  # marks
        1.700,  # latin
        1.069,  # greek
        0.499,  # cyrillic
        0.447,  # hebrew
        0.582,  # arabic
        1.385,  # other_two
        1.165,  # indic
        1.220,  # other_three
        1.190,  # general
        0.612,  # kana
        0.751,  # han
        0.832,  # hangul
        0.118,  # wide
        1.781,  # emoji
    ),
    "deepseek": (
        0.208,  # letters
        0.285,  # words
        0.138,  # long
        0.000,  # digits
        2.416,  # numbers
        0.065,  # spaces
        0.133,  # space_runs
        0.430,  # newlines
        0.446,  # marks
        1.668,  # latin
        0.547,  # greek
        0.439,  # cyrillic
        0.565,  # hebrew
        0.496,  # arabic
        0.659,  # other_two
        0.659,  # indic
        1.033,  # other_three
        1.061,  # general
        0.652,  # kana
        0.693,  # han
        0.874,  # hangul
        0.347,  # wide
        2.223,  # emoji
    ),
    "gemini": (
        0.236,  # letters
        0.158,  # words
        0.000,  # long
        0.570,  # digits
        2.281,  # numbers
        0.099,  # spaces
        0.000,  # space_runs
        1.047,  # newlines
        0.514,  # marks
        1.115,  # latin
        0.453,  # greek
        0.381,  # cyrillic
        0.526,  # hebrew
        0.435,  # arabic
        0.710,  # other_two
        0.579,  # indic
        0.900,  # other_three
        1.000,  # general
        0.389,  # kana
        0.771,  # han
        0.877,  # hangul
        0.000,  # wide
        1.308,  # emoji
    ),
    "unknown": (
        0.259,  # letters
        0.156,  # words
        0.070,  # long
        0.512,  # digits
        2.477,  # numbers
        0.099,  # spaces
        0.000,  # space_runs
        0.800,  # newlines
        0.463,  # marks
        1.940,  # latin
        1.115,  # greek
        0.647,  # cyrillic
        1.253,  # hebrew
        0.990,  # arabic
        2.487,  # other_two
        1.512,  # indic
        2.065,  # other_three
        1.035,  # general
        0.925,  # kana
        1.233,  # han
        1.198,  # hangul
        0.000,  # wide
        3.066,  # emoji
    ),
}
