/**
 * Pictures and the pages they stand on: {@link org.gristway.chart.Chart} and its like draw SVG,
 * {@link org.gristway.chart.ReportPage} puts it into one page of HTML. Nothing here knows what is
 * drawn.
 */
@NullMarked
package org.gristway.chart;

import org.jspecify.annotations.NullMarked;
