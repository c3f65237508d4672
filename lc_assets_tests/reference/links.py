"""Plain reference implementations for links of pages."""

from html.parser import HTMLParser


class Anchors(HTMLParser):
    """The obvious way: address and text of each anchor as tags come by."""

    def __init__(self):
        super().__init__()
        self.links, self.words = [], None

    def handle_starttag(self, tag, attrs):
        if tag == "a":
            self.handle_endtag("a")
            href = (
                dict(reversed(attrs)).get("href", "")
                if any(name == "href" for name, _ in attrs)
                else None
            )
            self.words = [] if href is not None else None
            if href is not None:
                self.links.append([href or "", self.words])

    def handle_endtag(self, tag):
        if tag == "a":
            self.words = None

    def handle_data(self, data):
        if self.words is not None:
            self.words.append(data)


def by_html_parser(html):
    parser = Anchors()
    parser.feed(html)
    parser.close()
    return [(href, " ".join("".join(words).split())) for href, words in parser.links]
