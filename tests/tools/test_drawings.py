"""Pictures of the architecture."""

from __future__ import annotations

import xml.etree.ElementTree as ET

from tools import drawings, project, structure

SVG = "{http://www.w3.org/2000/svg}"


def words(text: str, css: str) -> list[str]:
    return [element.text or "" for element in ET.fromstring(text).iter(f"{SVG}text") if element.get("class") == css]


def test_the_layers_are_those_of_the_contract_in_their_order() -> None:
    assert words(drawings.layers(), "name") == [name for names in structure.layer_names() for name in names]
    assert "The results of a fit" in words(drawings.layers(), "soft")
    assert not {"Experiments", "Parameters"} & set(words(drawings.layers(), "soft"))


def test_boxes_stay_inside_of_the_picture() -> None:
    for text in (drawings.layers(), drawings.data_path()):
        root = ET.fromstring(text)
        width, height = (float(root.attrib[name]) for name in ("width", "height"))
        for box in root.iter(f"{SVG}rect"):
            place = {name: float(box.get(name, 0)) for name in ("x", "y", "width", "height")}
            assert place["x"] + place["width"] <= width
            assert place["y"] + place["height"] <= height


def test_the_files_on_the_path_of_the_data_are_there() -> None:
    files = [file for _, file, *_ in (*drawings.STEPS, *drawings.USES)]
    assert all((project.PACKAGE / file).is_file() for file in files), files
    assert set(files) <= set(words(drawings.data_path(), "soft"))
