//! Pages that are hard to read, each in a folder of its own.
//!
//! What stands in `extra` is found and not asked for by Chromium without a window, in the order of
//! its letters; the comment beside it says why it is found nevertheless.

/// One page.
pub struct Page {
    /// Where it is; `{port}` in its text is the server's.
    pub path: &'static str,
    pub content_type: &'static str,
    pub link: &'static str,
    pub html: &'static str,
    /// Found, and not asked for.
    pub extra: &'static [&'static str],
}

const HTML: &str = "text/html; charset=utf-8";

pub const PAGES: &[Page] = &[
    Page {
        path: "/elements/page.html",
        content_type: HTML,
        link: "",
        html: r#"<!doctype html><body background=bg.gif><img src=a.gif><IMG SRC='b.gif'>
            <image src=c.gif><input type=image src=d.gif><input type=text src=no.gif>
            <video poster=e.gif></video><video src=f.mp4></video>
            <video><source src=g.webm type=video/webm></video><audio src=h.ogg></audio>
            <object data=i.svg></object><iframe src=j.html></iframe><embed src=k.svg>
            <video src=f.mp4><track default src=l.vtt></video>
            <script src=m.js></script><script type=text/template src=no.js></script>
            <script nomodule src=no.js></script><script type=module src=n.js></script>
            <img loading=lazy src=o.gif><table background=p.gif><tr><td background=q.gif>x</table>
            <noscript><img src=no.gif></noscript><template><img src=r.gif></template>
            <div><template shadowrootmode=open><img src=s.gif></template></div>"#,
        // A script may put what is in a template into the page.
        extra: &["/elements/r.gif"],
    },
    Page {
        path: "/links/page.html",
        content_type: HTML,
        link: "<field.css>; rel=preload; as=style, <field.js>; rel=\"modulepreload\"",
        html: r#"<!doctype html><link rel=stylesheet href=a.css><link rel=stylesheet/less href=no>
            <link rel="Alternate StyleSheet" title=x href=b.css>
            <link rel=stylesheet type=text/less href=no.css><link rel=stylesheet media=print href=c.css>
            <link rel=canonical href=no.html><link rel=preload as=font crossorigin href=d.woff2>
            <link rel=preload href=no.bin><link rel=modulepreload href=e.js>
            <link rel=preload as=image imagesrcset="f.gif 1x, g.gif 2x" href=f.gif>
            <link rel=icon href=h.gif><link rel=manifest href=i.json><link rel=next href=no.html>
            <link rel=prefetch href=j.html><link rel=dns-prefetch href=//other.localhost>"#,
        // Icons and manifests are asked for where there is a window; of the images one is taken.
        extra: &["/links/g.gif", "/links/h.gif", "/links/i.json"],
    },
    Page {
        path: "/pictures/page.html",
        content_type: HTML,
        link: "",
        html: r#"<!doctype html><picture><source srcset="a.gif 1x, b.gif 2x"><img src=c.gif></picture>
            <picture><source type=image/none srcset=d.gif><img src=e.gif></picture>
            <img srcset="f.gif 100w, g.gif 2000w" sizes=50px src=h.gif>
            <img srcset="i,j.gif 1x,k.gif 2x"><img srcset="l.gif,, m.gif 2x">
            <img srcset="n.gif (a, b) 1x, o.gif 2x"><img srcset="data:image/gif;base64,R0 3x, p.gif">
            <img srcset="q.gif?a=1&amp;b=2 1x"><img srcset="  , r.gif ,">"#,
        // Each screen takes another candidate; one with words that nobody knows is taken by none.
        extra: &[
            "/pictures/b.gif",
            "/pictures/c.gif",
            "/pictures/d.gif",
            "/pictures/g.gif",
            "/pictures/h.gif",
            "/pictures/k.gif",
            "/pictures/m.gif",
            "/pictures/n.gif",
        ],
    },
    Page {
        path: "/urls/page.html",
        content_type: HTML,
        link: "",
        html: "<!doctype html><img src=' a b.gif\n'><img src='ü.gif?ü&amp;x=1&copy=2&copy;'>\
            <img src='c\\d.gif'><img src='%7ee.gif'><img src='f.gif?a=1&b=2#c'><img src='&#x67;.gif'>\
            <img src='../urls/./h.gif'><img src='/urls//i.gif'><img src='j.gif?k=\"<>`{}|^'>\
            <img src='l\"<>`{}.gif'><img src='m\tn\no.gif'><img src='http:p.gif'><img src=''>\
            <img src='//www.localhost:{port}/urls/q.gif'><img src='HTTP://WWW.LocalHost:{port}/urls/r.gif'>\
            <img src='http://static.localhost:{port}/urls/s.gif'><img src='#t'><img src='?u'>\
            <img src='http://other.localhost:{port}/urls/no.gif'><img src='&notin;&not.gif&ampv'>\
            <img src='http:\\\\static.localhost:{port}\\urls\\w.gif'><img src='x.gif?&#0;&#128;'>\
            <img src='%zz.gif'><img src='y;z=1,2.gif'><img src='%2e%2E/urls/1.gif'>\
            <img src='http://w%77w.localhost:{port}/urls/2.gif'><img src='&Aacute.gif&Aacute=3'>",
        extra: &[],
    },
    Page {
        path: "/latin/page.html",
        content_type: "text/html; charset=ISO-8859-1",
        link: "",
        html: "<!doctype html><meta charset=utf-8><img src='ü.gif?ü&euro;'><img src='a.gif'>\
            <p style='background:url(é.gif)'>x</p><img srcset='ö.gif?ö 1x'>",
        extra: &[],
    },
    Page {
        path: "/meta/page.html",
        content_type: "text/html",
        link: "",
        html: "<!doctype html><meta http-equiv=content-type content='text/html; charset=windows-1252'>\
            <meta charset=utf-8><img src='ü.gif?ü'><img src='a.gif'><img src='ß.gif?ß'>",
        extra: &[],
    },
    Page {
        path: "/base/page.html",
        content_type: HTML,
        link: "",
        html: "<!doctype html><link rel=stylesheet href=a.css><base target=x>\
            <base href=' /base/b/c.html'><base href=/base/no/><img src=d.gif><img src=../e.gif>\
            <style>p { background: url(f.gif) }</style><p style='background:url(g.gif)'>x\
            <p>x</p><link rel=stylesheet href=h.css><script src=i.js></script>",
        extra: &[],
    },
    Page {
        path: "/broken/page.html",
        content_type: HTML,
        link: "",
        html: "<img/src=a.gif><img src = 'b.gif'alt=x><img =src=no src=c.gif><img src=d.gif src=no>\
            <img\nsrc\n=\n\"e.gif\"\n/><img alt='\"' src=f.gif><img alt=\"'\" src=g.gif>< img src=no>\
            <img src=h.gif/><p<img src=no><img src=\"i.gif\"\"src=no><img ='' src=j.gif>\
            <im\0g src=no><img src='k\0l.gif'><img 'a'src=m.gif><img src=n.gif/ ><a <img src=o.gif>\
            <img src='p.gif\" ><img src=q.gif><b title='</b><img src=no>'><table><img src=r.gif><tr>\
            <select><option><img src=s.gif></select></form></table></p></div><li><li><img src=t.gif>\
            <img src='u.gif'",
        extra: &[],
    },
    Page {
        path: "/text/page.html",
        content_type: HTML,
        link: "",
        html: r#"<!doctype html><!-- <img src=no> --><!--><img src=a.gif><!-- --!><img src=b.gif>
            <!---><img src=c.gif><!-- <!--><img src=d.gif><!-- - -- > <img src=no> --->
            <script>"<img src=no>"</script><textarea></text<img src=no></textareax></textarea >
            <title><img src=no></title><xmp><img src=no></xmp><iframe><img src=no></iframe>
            <noscript><img src=no></noscript><noembed><img src=no></noembed>
            <!doctype "<img src=no>"><?php <img src=no?><![CDATA[<img src=no>]]></ <img src=no>
            </p src=no><p title="<img src=no>"></><!x <img src=no><img src=e.gif>
            <script><!-- <script> </script> <img src=no> --></script><img src=f.gif>
            <script><!-- <script> </script> --> <img src=no></script><img src=g.gif>
            <script><!-- <scriptx> </script><img src=h.gif>
            <script><!--><script></script><img src=i.gif>
            <style></styl><img src=no></style ><img src=j.gif><STYLE><!-- </style><img src=k.gif>
            <plaintext><img src=no></plaintext><img src=no>"#,
        extra: &[],
    },
    Page {
        path: "/foreign/page.html",
        content_type: HTML,
        link: "",
        html: r#"<!doctype html><svg width=9 height=9><image href=a.gif /><image xlink:href=b.gif width=9 height=9 />
            <use href="c.svg#x"/><use xlink:href="d.svg#x"/><filter id=f><feImage href=e.gif /></filter>
            <title><img src=f.gif></title><style>rect { mask: url(g.svg#x) }<![CDATA[
            circle { mask: url(h.svg#x) }]]></style><rect width=9 height=9 filter="url(#f)"/>
            <circle r=9 /><![CDATA[<img src=no>]]><foreignObject><style></styl><img src=no></style>
            <img src=i.gif></foreignObject><script href=j.js></script><img src=k.gif></svg>
            <svg><p><style><img src=no></style><img src=l.gif></svg><math><mi><img src=m.gif></mi>
            <annotation-xml encoding=text/html><img src=n.gif></annotation-xml></math>
            <svg><path clip-path="url(o.svg#x)" d="M0 0h9v9z"/><desc><title><img src=no></title></desc></svg>
            <svg/><style><img src=no></style><img src=p.gif><svg><style/><img src=q.gif></svg>"#,
        extra: &[],
    },
    Page {
        path: "/style/page.html",
        content_type: HTML,
        link: "",
        html: r#"<!doctype html><style>@import 'a.css'; @import url(b.css) screen; @import url( "c.css" );
            @namespace svg url(no.css);
            .d { background: url( d.gif ), url("e.gif") no-repeat, url(f\ g.gif), url(h\69.gif) }
            .i { background: image-set("i.gif" 1x, url(j.gif) 2x, "k.gif" type("image/none")) }
            .l { content: "url(no.gif)"; /* url(no.gif) */ background: URL(l.gif) }
            .m { background: \75rl(m.gif) } .n { background: url(no"no.gif) }
            .o { background: url(o.gif); background-image: url('p\'q.gif') }
            .r { background: -webkit-image-set(url(r.gif) 1x) }
            .s { background: url('s\
.gif') } .t { list-style: url(t.gif) } .u::before { content: url(u.gif) }
            .v { border-image: url(v.gif) 1; cursor: url(w.gif), auto }
            .x { --x: url(x.gif); background: var(--x) } .y { background: url() }
            @font-face { font-family: z; src: url(z.eot); src: url(z.eot?#iefix) format("embedded-opentype"),
            url(z.woff2) format("woff2"), url(z.svg#z) format("svg") }
            .z { font-family: z } .e { background: url(1.gif</style>
            <style type=text/less>.d { background: url(no.gif) }</style><style media=none>p{}</style>
            <p class=d>x<p class=i>x<p class=l>x<p class=m>x<p class=n>x<p class=o>x<p class=r>x<p class=s>x
            <ul><li class=t>x</ul><p class=u>x<p class=v>x<p class=x>x<p class=y>x<p class=z>x<p class=e>x
            <p style="background: URL( &quot;2.gif&quot; )">x<p style='background:url(3.gif'>x"#,
        // One image of a set is taken; that a later rule wins is not looked at.
        extra: &["/style/j.gif", "/style/k.gif", "/style/o.gif"],
    },
    Page {
        path: "/sheets/page.html",
        content_type: HTML,
        link: "",
        html: "<!doctype html><link rel=stylesheet href=deep/a.css><p class=a>x<p class=b>x<p class=c>x",
        extra: &["/sheets/d.gif"],
    },
    Page {
        path: "/sheets/deep/a.css",
        content_type: "text/css",
        link: "",
        html: "@charset \"utf-8\";@import url(more/b.css);.a{background:url(a.gif)}\
            .b{background:url(../b.gif)}.unused{background:url(../d.gif)}",
        extra: &[],
    },
    Page {
        path: "/sheets/deep/more/b.css",
        content_type: "text/css",
        link: "",
        html: ".c{background:url(c.gif)}",
        extra: &[],
    },
    Page {
        path: "/xhtml/page.xhtml",
        content_type: "application/xhtml+xml",
        link: "",
        html: r#"<?xml version="1.0"?><html xmlns="http://www.w3.org/1999/xhtml"><head><title>x</title>
            <script src="a.js"/><style>p { background: url(b.gif) }</style></head><body><p>x</p>
            <img src="c.gif?a=1&amp;b=2" /><!-- <img src="no" /> --><![CDATA[<img src="no" />]]>
            <noscript><p>x</p></noscript><img src="d.gif"></img></body></html>"#,
        extra: &[],
    },
];
