// Draws the charts of `classaccess report --html` from the rows in #data. The address's #fragment is the page's state:
// filter=TEXT, class=ID.
(function () {
  'use strict';
  var data = JSON.parse(document.getElementById('data').textContent);
  var charts = {};
  data.charts.forEach(function (chart) {
    chart.rows = chart.rows.map(function (row) {
      var object = {};
      chart.columns.forEach(function (name, i) { object[name] = row[i]; });
      return object;
    });
    charts[chart.id] = chart;
  });

  var width = 1150;
  var state = { filter: '', klass: null };
  var shown = null;  // the class whose layout is drawn: the chosen one, else the first
  var heat = d3.scale.linear().domain([0, 0.5, 1]).range(['#eef3f8', '#f2a65a', '#b3261e']).clamp(true);
  var count = d3.format(',');

  function accesses(row) { return row.loads + row.stores + row.rmws; }
  function simple(name) { return name.replace(/^.*\.(?=[^.]*$)/, ''); }
  function fits(row) {
    if (state.filter === '') return true;
    var wanted = state.filter.toLowerCase();
    return ['class', 'method', 'thread', 'function', 'field'].some(function (name) {
      return typeof row[name] === 'string' && row[name].toLowerCase().indexOf(wanted) >= 0;
    });
  }
  function rows(id) { return charts[id].rows.filter(fits); }

  function readState() {
    state = { filter: '', klass: null };
    location.hash.replace(/^#/, '').split('&').forEach(function (part) {
      var at = part.indexOf('='), value = decodeURIComponent(part.slice(at + 1));
      if (part.slice(0, at) === 'filter') state.filter = value;
      if (part.slice(0, at) === 'class') state.klass = +value;
    });
  }
  function writeState() {
    var parts = [];
    if (state.filter !== '') parts.push('filter=' + encodeURIComponent(state.filter));
    if (state.klass !== null) parts.push('class=' + state.klass);
    history.replaceState(null, '', '#' + parts.join('&'));
  }
  function choose(klass) {
    state.klass = klass;
    writeState();
    draw();
  }

  function table(place, id, list) {
    var chart = charts[id], columns = chart.columns.filter(function (name) { return name !== 'class_id'; });
    var isNumber = {};
    columns.forEach(function (name) {
      isNumber[name] = chart.rows.some(function (row) { return typeof row[name] === 'number'; });
    });
    if (chart.sort) {
      list = list.slice().sort(function (a, b) {
        var order = isNumber[chart.sort] ? d3.descending(a[chart.sort], b[chart.sort]) : d3.ascending(a[chart.sort], b[chart.sort]);
        return chart.reversed ? -order : order;
      });
    }
    place.html('');
    if (list.length === 0) { place.append('p').attr('class', 'empty').text('nothing'); return; }
    var whole = place.append('div').attr('class', 'rows').append('table');
    whole.append('thead').append('tr').selectAll('th').data(columns).enter().append('th')
      .attr('class', function (name) { return isNumber[name] ? 'number' : null; })
      .attr('data-column', function (name) { return name; })
      .text(function (name) { return name.replace(/_/g, ' ') + (chart.sort === name ? (chart.reversed ? ' \u25b2' : ' \u25bc') : ''); })
      .on('click', function (name) {
        chart.reversed = chart.sort === name && !chart.reversed;
        chart.sort = name;
        draw();
      });
    var line = whole.append('tbody').selectAll('tr').data(list).enter().append('tr')
      .classed('chosen', function (row) { return 'class_id' in row && row.class_id === shown; })
      .on('click', function (row) { if (row.class_id != null) choose(row.class_id); });
    columns.forEach(function (name) {
      line.append('td').attr('class', isNumber[name] ? 'number' : null).text(function (row) {
        return row[name] === null ? '' : typeof row[name] === 'number' ? count(row[name]) : row[name];
      }).attr('title', function (row) { return typeof row[name] === 'string' && row[name].length > 40 ? row[name] : null; });
    });
  }

  function picture(place, height) {
    place.html('');
    return place.append('svg').attr('width', width).attr('height', height).attr('viewBox', '0 0 ' + width + ' ' + height);
  }
  function nothing(place) { place.html('').append('p').attr('class', 'empty').text('nothing'); }

  // Area: accesses; colour: share of stores.
  function treemap(place) {
    var list = rows('classes');
    if (list.length === 0) return nothing(place);
    var nodes = d3.layout.treemap().size([width, 360]).sticky(false).sort(function (a, b) { return a.accesses - b.accesses; })
      .value(function (row) { return row.accesses; }).nodes({ children: list.map(function (row) { return Object.create(row); }) })
      .filter(function (node) { return !node.children; });
    var cell = picture(place, 360).selectAll('g').data(nodes).enter().append('g')
      .attr('transform', function (node) { return 'translate(' + node.x + ',' + node.y + ')'; });
    cell.append('rect').attr('class', 'cell').attr('data-class', function (node) { return node['class']; })
      .attr('width', function (node) { return node.dx; }).attr('height', function (node) { return node.dy; })
      .attr('fill', function (node) { return heat((node.stores + node.rmws) / Math.max(node.accesses, 1)); })
      .on('click', function (node) { if (node.class_id != null) choose(node.class_id); })
      .append('title').text(function (node) {
        return node['class'] + '\n' + count(node.accesses) + ' accesses, ' + count(node.stores + node.rmws) + ' of them stores';
      });
    cell.append('text').attr('x', 4).attr('y', 14).text(function (node) {
      var name = simple(node['class']);
      return node.dy > 16 && node.dx > name.length * 7 ? name : '';
    });
  }

  // The object as its bytes, eight to a word, sixteen to a line; colour: a field's share of the most used one's accesses.
  function layout(place) {
    var list = charts.fields.rows.filter(function (row) { return row.class_id === shown; });
    if (list.length === 0) return nothing(place);
    var sizes = { 'boolean': 1, 'byte': 1, 'char': 2, 'short': 2, 'int': 4, 'float': 4, 'long': 8, 'double': 8 };
    var reference = d3.max(charts.fields.rows, function (row) { return row.type in sizes ? 0 : row.touched_bytes; }) > 4 ? 8 : 4;
    var most = d3.max(list, accesses), bytes = list[0].instance_size || 0;
    var drawn = [];
    list.forEach(function (row) {
      var size = sizes[row.type] || reference;
      for (var at = row.offset, end = row.offset + size; at < end;) {
        var stop = Math.min(end, (Math.floor(at / 16) + 1) * 16);
        drawn.push({ row: row, at: at, size: stop - at, first: at === row.offset });
        at = stop;
      }
      bytes = Math.max(bytes, row.offset + size);
    });
    var unit = 60, high = 40, left = 50, lines = Math.ceil(bytes / 16);
    place.html('').append('p').text(list[0]['class'] + ', ' + bytes + ' bytes');
    var svg = place.append('svg').attr('width', width).attr('height', lines * high + 4);
    svg.selectAll('text.at').data(d3.range(lines)).enter().append('text').attr('class', 'at').attr('x', 0)
      .attr('y', function (i) { return i * high + 24; }).text(function (i) { return i * 16; });
    svg.append('g').selectAll('rect').data(d3.range(bytes)).enter().append('rect').attr('fill', '#fff').attr('stroke', '#ddd')
      .attr('x', function (i) { return left + i % 16 * unit; }).attr('y', function (i) { return Math.floor(i / 16) * high; })
      .attr('width', unit).attr('height', high - 4);
    var part = svg.append('g').selectAll('g').data(drawn).enter().append('g').attr('transform', function (d) {
      return 'translate(' + (left + d.at % 16 * unit) + ',' + Math.floor(d.at / 16) * high + ')';
    });
    part.append('rect').attr('class', 'cell').attr('data-field', function (d) { return d.row.field; })
      .attr('data-accesses', function (d) { return accesses(d.row); })
      .attr('width', function (d) { return d.size * unit; }).attr('height', high - 4)
      .attr('fill', function (d) { return accesses(d.row) === 0 ? '#ddd' : heat(accesses(d.row) / Math.max(most, 1)); })
      .append('title').text(function (d) {
        return d.row.type + ' ' + d.row.field + ' of ' + d.row.declared_in + ', offset ' + d.row.offset + '\n' +
          count(d.row.loads) + ' loads, ' + count(d.row.stores) + ' stores, ' + count(d.row.rmws) + ' both, ' + d.row.threads + ' threads' +
          (accesses(d.row) === 0 ? '\nnot touched' : d.row.loads + d.row.rmws === 0 ? '\nnever read' : '');
      });
    part.append('text').attr('x', 3).attr('y', 15).text(function (d) {
      return d.first ? d.row.field.slice(0, Math.floor(d.size * unit / 7)) : '';
    });
    part.append('text').attr('x', 3).attr('y', 30).text(function (d) {
      return d.first && d.size > 1 ? (d.row.loads + d.row.rmws === 0 && d.row.stores > 0 ? 'never read' : count(accesses(d.row))) : '';
    });
  }

  function grid(place, list, x, y, value, label) {
    if (list.length === 0) return nothing(place);
    var columns = d3.set(list.map(x)).values(), lines = d3.set(list.map(y)).values();
    var across = d3.scale.ordinal().domain(columns).rangeBands([260, width - 10]);
    var high = Math.max(2, Math.min(18, 700 / lines.length));
    var down = d3.scale.ordinal().domain(lines).rangeBands([0, lines.length * high]);
    var most = Math.log(1 + d3.max(list, value));
    var names = columns.length <= 30 && typeof x(list[0]) === 'string';
    var svg = picture(place, lines.length * high + (names ? 120 : 4));
    svg.selectAll('rect').data(list).enter().append('rect').attr('class', 'cell')
      .attr('x', function (d) { return across(x(d)); }).attr('y', function (d) { return down(y(d)); })
      .attr('width', across.rangeBand()).attr('height', high)
      .attr('fill', function (d) { return heat(Math.log(1 + value(d)) / Math.max(most, 1e-9)); })
      .append('title').text(label);
    if (names) {
      svg.selectAll('text.column').data(columns).enter().append('text').attr('class', 'column').attr('text-anchor', 'end')
        .attr('transform', function (d) {
          return 'translate(' + (across(d) + across.rangeBand() / 2) + ',' + (lines.length * high + 12) + ') rotate(-35)';
        }).text(function (d) { return simple(d).slice(0, 24); });
    }
    if (high >= 10) {
      svg.selectAll('text.line').data(lines).enter().append('text').attr('class', 'line').attr('x', 254).attr('text-anchor', 'end')
        .attr('y', function (d) { return down(d) + high / 2 + 4; }).text(function (d) { return simple(String(d)).slice(-36); });
    }
  }

  // Added up over what the filter leaves, by class or by thread.
  function timeline(place) {
    var list = rows('timeline'), sums = {}, buckets = d3.range(100);
    var times = charts.timeline.rows.length ? charts.timeline.rows[0].bucket_ns / 1e6 : 0;
    var largest = {};
    list.forEach(function (row) { largest[row['class']] = (largest[row['class']] || 0) + row.accesses; });
    list.forEach(function (row) {
      ['class', 'thread'].forEach(function (what) {
        var key = what + ' ' + row[what];
        sums[key] = sums[key] || { name: row[what], what: what, all: 0, buckets: {} };
        sums[key].all += row.accesses;
        sums[key].buckets[row.bucket] = (sums[key].buckets[row.bucket] || 0) + row.accesses;
      });
    });
    var cells = [];
    Object.keys(sums).sort(function (a, b) {
      return d3.ascending(sums[a].what, sums[b].what) || d3.descending(sums[a].all, sums[b].all) || d3.ascending(a, b);
    }).forEach(function (key) {
      buckets.forEach(function (bucket) {
        cells.push({ key: key, name: sums[key].name, bucket: bucket, accesses: sums[key].buckets[bucket] || 0 });
      });
    });
    grid(place, cells, function (d) { return d.bucket; }, function (d) { return d.key; }, function (d) { return d.accesses; },
      function (d) { return d.name + '\nfrom ' + (d.bucket * times).toFixed(2) + ' ms: ' + count(d.accesses); });
  }

  var draws = {
    run: function (place) {
      place.html('');
      var run = charts.run.rows[0];
      if (!run) return nothing(place);
      var line = place.append('table').append('tbody').selectAll('tr').data(charts.run.columns).enter().append('tr');
      line.append('td').text(function (name) { return name.replace(/_/g, ' '); });
      line.append('td').style('white-space', 'normal').style('max-width', '70em').style('overflow-wrap', 'anywhere').attr('id', function (name) { return 'run-' + name; }).text(function (name) {
        return typeof run[name] === 'number' ? count(run[name]) : run[name];
      });
    },
    classes: function (place) {
      place.html('');
      treemap(place.append('div'));
      table(place.append('div'), 'classes', rows('classes'));
    },
    fields: layout,
    timeline: timeline,
    matrix: function (place) {
      grid(place, rows('matrix'), function (d) { return d['class']; }, function (d) { return d.thread; },
        function (d) { return d.accesses; }, function (d) { return d.thread + '\n' + d['class'] + '\n' + count(d.accesses); });
    },
    pages: function (place) {
      grid(place, charts.pages.rows, function (d) { return d.column; }, function (d) { return d.line; },
        function (d) { return d.touches; }, function (d) { return 'pages from ' + d.first_page + ': ' + count(d.touches) + ' touches'; });
    },
    calls: function (place) {
      grid(place, rows('calls'), function (d) { return d.log2_ns; }, function (d) { return d['function']; },
        function (d) { return d.calls; }, function (d) { return d['function'] + '\nfrom 2^' + d.log2_ns + ' ns: ' + count(d.calls); });
    }
  };
  ['sites', 'never_read', 'diagnostic'].forEach(function (id) {
    draws[id] = function (place) { table(place, id, id === 'diagnostic' ? charts[id].rows : rows(id)); };
  });

  var page = d3.select('#page');
  page.append('h1').text('classaccess: ' + data.database);
  var bar = page.append('div').attr('id', 'bar');
  bar.append('input').attr('id', 'filter').attr('type', 'search').attr('placeholder', 'class, thread, method or field contains')
    .on('input', function () {
      state.filter = this.value;
      writeState();
      draw();
    });
  bar.append('span').attr('id', 'sum').style('margin-left', '1em');
  data.charts.forEach(function (chart) {
    var section = page.append('section').attr('id', chart.id);
    section.append('h2').text(chart.title);
    section.append('div').attr('class', 'chart');
    var limit = / LIMIT (\d+)$/.exec(chart.sql);
    if (limit && chart.rows.length >= +limit[1]) {
      section.append('p').attr('class', 'empty').text('the first ' + count(+limit[1]) + ' rows: the SQL has a LIMIT');
    }
    var more = section.append('details');
    more.append('summary').text('SQL');
    more.append('pre').text(chart.sql);
  });

  function draw() {
    document.getElementById('filter').value = state.filter;
    var first = rows('classes').filter(function (row) { return row.class_id !== null; })[0];
    shown = state.klass !== null ? state.klass : first ? first.class_id : null;
    d3.select('#sum').text(count(d3.sum(rows('classes'), function (row) { return row.accesses; })) + ' accesses shown');
    data.charts.forEach(function (chart) { draws[chart.id](d3.select('#' + chart.id + ' .chart')); });
  }
  window.onhashchange = function () { readState(); draw(); };
  readState();
  draw();
})();
