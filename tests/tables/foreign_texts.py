"""Tables of one motion as programs of others write them: dialects, units and faults.

The motion has the joints shoulder and elbow at the times 0, 0.1, 0.2 and 0.3 s, see `T` and `POSITION`; in a dialect
that has few digits the numbers are as it rounds them.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

JOINTS = ("shoulder", "elbow")
T = (0.0, 0.1, 0.2, 0.3)
POSITION = ((0.0, -0.25), (0.5, 0.125), (1.0, 0.75), (0.875, 1.5))
DEGREES = ((0.0, -15.0), (30.0, 7.5), (60.0, 45.0), (52.5, 90.0))


class Foreign(NamedTuple):
    """A file, and what a user gives beside `file`. factor: from its numbers, which are `numbers`, to SI; noted:
    what is said to have been guessed, without the name of the file."""

    text: str
    encoding: str = "utf-8"
    keys: Mapping[str, Any] = MappingProxyType({})
    numbers: tuple[tuple[float, ...], ...] = POSITION
    factor: float | tuple[float, float] = 1.0
    noted: tuple[str, ...] = ()
    suffix: str = ".csv"

    @property
    def data(self) -> bytes:
        return self.text.encode(self.encoding)


DEG = 3.141592653589793 / 180.0
ZERO = "the first row is taken as t = 0"

READ: dict[str, Foreign] = {
    "Excel, US": Foreign("t,shoulder,elbow\r\n0,0,-0.25\r\n0.1,0.5,0.125\r\n0.2,1,0.75\r\n0.3,0.875,1.5\r\n"),
    "Excel, German": Foreign("t;shoulder;elbow\r\n0;0;-0,25\r\n0,1;0,5;0,125\r\n0,2;1;0,75\r\n0,3;0,875;1,5\r\n"),
    "Excel, CSV UTF-8": Foreign(
        "t;shoulder;elbow\r\n0;0;-0,25\r\n0,1;0,5;0,125\r\n0,2;1;0,75\r\n0,3;0,875;1,5\r\n", "utf-8-sig"
    ),
    "Excel, Unicode text": Foreign(
        "t\tshoulder\telbow\r\n0\t0\t-0,25\r\n0,1\t0,5\t0,125\r\n0,2\t1\t0,75\r\n0,3\t0,875\t1,5\r\n",
        "utf-16",
        suffix=".txt",
    ),
    "UTF-16 without a mark": Foreign(
        "t\tshoulder\telbow\r\n0\t0\t-0.25\r\n0.1\t0.5\t0.125\r\n0.2\t1\t0.75\r\n0.3\t0.875\t1.5\r\n", "utf-16-be"
    ),
    "Excel, sep": Foreign("sep=;\r\nt;shoulder;elbow\r\n0;0;-0.25\r\n0.1;0.5;0.125\r\n0.2;1;0.75\r\n0.3;0.875;1.5\r\n"),
    "Excel, one of many empty rows": Foreign(
        "t,shoulder,elbow,,\r\n0,0,-0.25,,\r\n0.1,0.5,0.125,,\r\n0.2,1,0.75,,\r\n0.3,0.875,1.5,,\r\n,,,,\r\n,,,,\r\n"
    ),
    "Excel, quoted decimal commas": Foreign(
        't,shoulder,elbow\r\n"0","0","-0,25"\r\n"0,1","0,5","0,125"\r\n"0,2","1","0,75"\r\n"0,3","0,875","1,5"\r\n'
    ),
    "LibreOffice, quoted text": Foreign(
        '"t";"shoulder";"elbow"\n0;0;-0,25\n0,1;0,5;0,125\n0,2;1;0,75\n0,3;0,875;1,5\n'
    ),
    "LabVIEW, LVM": Foreign(
        "LabVIEW Measurement\t\r\nWriter_Version\t2\r\nReader_Version\t2\r\nSeparator\tTab\r\nDecimal_Separator\t.\r\n"
        "Multi_Headings\tNo\r\nX_Columns\tOne\r\nTime_Pref\tRelative\r\nOperator\tlab\r\nDate\t2024/03/05\r\n"
        "Time\t10:11:12.3456\r\n***End_of_Header***\t\r\n\t\r\nChannels\t2\t\t\r\nSamples\t4\t4\t\r\n"
        "Date\t2024/03/05\t2024/03/05\t\r\nTime\t10:11:12.3456\t10:11:12.3456\t\r\nY_Unit_Label\trad\trad\t\r\n"
        "X_Dimension\tTime\tTime\t\r\nX0\t0.0E+0\t0.0E+0\t\r\nDelta_X\t0.100000\t0.100000\t\r\n***End_of_Header***\t\t\t\r\n"
        "X_Value\tshoulder\telbow\tComment\r\n0.000000\t0.000000\t-0.250000\t\r\n0.100000\t0.500000\t0.125000\t\r\n"
        "0.200000\t1.000000\t0.750000\t\r\n0.300000\t0.875000\t1.500000\t\r\n",
        keys={"columns": {"t": "X_Value"}},
        suffix=".lvm",
    ),
    "LabVIEW, spreadsheet": Foreign(
        "Time\tshoulder\telbow\r\n0.000\t0.000\t-0.250\r\n0.100\t0.500\t0.125\r\n0.200\t1.000\t0.750\r\n"
        "0.300\t0.875\t1.500\r\n",
        suffix=".xls.txt",
    ),
    "Vector CANape": Foreign(
        "time;shoulder;elbow\r\ns;deg;deg\r\n0,000000;0,00;-15,00\r\n0,100000;30,00;7,50\r\n0,200000;60,00;45,00\r\n"
        "0,300000;52,50;90,00\r\n",
        "cp1252",
        numbers=DEGREES,
        factor=DEG,
    ),
    "Vector CANape, degree signs": Foreign(
        "Time [s];shoulder [°];elbow [°]\n0,0;0,00;-15,00\n0,1;30,00;7,50\n0,2;60,00;45,00\n0,3;52,50;90,00\n",
        "cp1252",
        numbers=DEGREES,
        factor=DEG,
    ),
    "Vector CANoe, comments": Foreign(
        "// CANoe logging\r\n// 2024-03-05\r\nTime[s];shoulder[rad];elbow[rad]\r\n0.0;0;-0.25\r\n0.1;0.5;0.125\r\n"
        "0.2;1;0.75\r\n0.3;0.875;1.5\r\n"
    ),
    "MATLAB, writetable": Foreign("t,shoulder,elbow\n0,0,-0.25\n0.1,0.5,0.125\n0.2,1,0.75\n0.3,0.875,1.5\n"),
    "MATLAB, writetimetable": Foreign(
        "Time,shoulder,elbow\n0 sec,0,-0.25\n0.1 sec,0.5,0.125\n0.2 sec,1,0.75\n0.3 sec,0.875,1.5\n"
    ),
    "MATLAB, save -ascii": Foreign(
        "   0.0000000e+00   0.0000000e+00  -2.5000000e-01\n   1.0000000e-01   5.0000000e-01   1.2500000e-01\n"
        "   2.0000000e-01   1.0000000e+00   7.5000000e-01\n   3.0000000e-01   8.7500000e-01   1.5000000e+00\n",
        keys={"columns": {"t": "#1", "shoulder": "#2", "elbow": "#3"}},
        suffix=".txt",
    ),
    "MATLAB, writematrix": Foreign(
        "0,0,-0.25\n0.1,0.5,0.125\n0.2,1,0.75\n0.3,0.875,1.5\n",
        keys={"columns": {"t": "#1", "shoulder": "#2", "elbow": "#3"}},
    ),
    "Octave, save -text of columns": Foreign(
        "% t shoulder elbow\n0 0 -0.25\n0.1 0.5 0.125\n0.2 1 0.75\n0.3 0.875 1.5\n", suffix=".dat"
    ),
    "Simulink, To File as CSV": Foreign(
        "time,<shoulder>,<elbow>\n0,0,-0.25\n0.1,0.5,0.125\n0.2,1,0.75\n0.3,0.875,1.5\n",
        keys={"columns": {"shoulder": "<shoulder>", "elbow": "<elbow>"}},
    ),
    "Simulink, Data Inspector": Foreign(
        "time,shoulder,elbow\n,Unit: deg,Unit: deg\n0,0,-15\n0.1,30,7.5\n0.2,60,45\n0.3,52.5,90\n",
        numbers=DEGREES,
        factor=DEG,
    ),
    "numpy, savetxt": Foreign(
        "# t shoulder elbow\n0.000000000000000000e+00 0.000000000000000000e+00 -2.500000000000000000e-01\n"
        "1.000000000000000056e-01 5.000000000000000000e-01 1.250000000000000000e-01\n"
        "2.000000000000000111e-01 1.000000000000000000e+00 7.500000000000000000e-01\n"
        "2.999999999999999889e-01 8.750000000000000000e-01 1.500000000000000000e+00\n",
        suffix=".txt",
    ),
    "numpy, savetxt with commas": Foreign(
        "# t, shoulder, elbow\n0.0,0.0,-0.25\n0.1,0.5,0.125\n0.2,1.0,0.75\n0.3,0.875,1.5\n"
    ),
    "pandas, index": Foreign(",t,shoulder,elbow\n0,0.0,0.0,-0.25\n1,0.1,0.5,0.125\n2,0.2,1.0,0.75\n3,0.3,0.875,1.5\n"),
    "pandas, times with a zone": Foreign(
        "time,shoulder,elbow\n2024-03-05 10:11:12+01:00,0.0,-0.25\n2024-03-05 10:11:12.100000+01:00,0.5,0.125\n"
        "2024-03-05 10:11:12.200000+01:00,1.0,0.75\n2024-03-05 10:11:12.300000+01:00,0.875,1.5\n",
        noted=(f"dates, from 2024-03-05 09:11:12; {ZERO}",),
    ),
    "pandas, an index of times in ns": Foreign(
        ",shoulder,elbow\n2024-03-05 10:11:12.000000000,0.0,-0.25\n2024-03-05 10:11:12.100000000,0.5,0.125\n"
        "2024-03-05 10:11:12.200000000,1.0,0.75\n2024-03-05 10:11:12.300000000,0.875,1.5\n",
        keys={"columns": {"t": ""}},
        noted=(f"dates, from 2024-03-05 10:11:12; {ZERO}",),
    ),
    "pandas, a Timedelta": Foreign(
        "time,shoulder,elbow\n0 days 00:00:00,0.0,-0.25\n0 days 00:00:00.100000,0.5,0.125\n"
        "0 days 00:00:00.200000,1.0,0.75\n0 days 00:00:00.300000,0.875,1.5\n"
    ),
    "polars": Foreign("t,shoulder,elbow\n0.0,0.0,-0.25\n0.1,0.5,0.125\n0.2,1.0,0.75\n0.3,0.875,1.5\n"),
    "R, write.table": Foreign(
        '"t" "shoulder" "elbow"\n"1" 0 0 -0.25\n"2" 0.1 0.5 0.125\n"3" 0.2 1 0.75\n"4" 0.3 0.875 1.5\n', suffix=".txt"
    ),
    "R, write.csv2": Foreign(
        '"";"t";"shoulder";"elbow"\n"1";0;0;-0,25\n"2";0,1;0,5;0,125\n"3";0,2;1;0,75\n"4";0,3;0,875;1,5\n'
    ),
    "PlotJuggler": Foreign(
        "__time,/joint_states/elbow/position,/joint_states/shoulder/position,/joint_states/shoulder/velocity\n"
        "1709633472.000000,-0.25,0,0\n1709633472.100000,0.125,0.5,1\n1709633472.200000,0.75,1,1\n"
        "1709633472.300000,1.5,0.875,0\n",
        noted=(f"times since 1970 in s, from 2024-03-05 10:11:12 UTC; {ZERO}",),
    ),
    "Foxglove Studio": Foreign(
        "elapsed,timestamp,shoulder.position,elbow.position\n0,1709633472.0,0,-0.25\n0.1,1709633472.1,0.5,0.125\n"
        "0.2,1709633472.2,1,0.75\n0.3,1709633472.3,0.875,1.5\n",
        noted=(f"times since 1970 in s, from 2024-03-05 10:11:12 UTC; {ZERO}",),
    ),
    "Foxglove Studio, plot": Foreign(
        "timestamp,topic,value,elbow\n1.1,a,0,-0.25\n1.2,a,0.5,0.125\n1.3,a,1,0.75\n1.4,a,0.875,1.5\n",
        keys={"columns": {"shoulder": "value"}},
    ),
    "rostopic echo -p": Foreign(
        "%time,field.header.seq,field.header.stamp,field.header.frame_id,field.name0,field.name1,field.position0,"
        "field.position1,field.velocity0,field.velocity1\n"
        "1709633472000000000,1,1709633472000000000,,elbow,shoulder,-0.25,0.0,0,0\n"
        "1709633472100000000,2,1709633472100000000,,elbow,shoulder,0.125,0.5,0,0\n"
        "1709633472200000000,3,1709633472200000000,,elbow,shoulder,0.75,1.0,0,0\n"
        "1709633472300000000,4,1709633472300000000,,elbow,shoulder,1.5,0.875,0,0\n",
        noted=(f"times since 1970 in ns, from 2024-03-05 10:11:12 UTC; {ZERO}",),
    ),
    "rosbag to CSV": Foreign(
        "rosbagTimestamp,header,seq,stamp,secs,nsecs,frame_id,name,shoulder,elbow\n"
        "1709633472000000000,,1,,1709633472,0,'',\"['a']\",0,-0.25\n"
        "1709633472100000000,,2,,1709633472,100000000,'',\"['a']\",0.5,0.125\n"
        "1709633472200000000,,3,,1709633472,200000000,'',\"['a']\",1,0.75\n"
        "1709633472300000000,,4,,1709633472,300000000,'',\"['a']\",0.875,1.5\n",
        noted=(f"times since 1970 in s, from 2024-03-05 10:11:12 UTC; {ZERO}",),
    ),
    "ros2 topic echo --csv": Foreign(
        "1709633472,0,,elbow,shoulder,-0.25,0.0,0.0,0.0\n1709633472,100000000,,elbow,shoulder,0.125,0.5,0.0,0.0\n"
        "1709633472,200000000,,elbow,shoulder,0.75,1.0,0.0,0.0\n1709633472,300000000,,elbow,shoulder,1.5,0.875,0.0,0.0\n",
        keys={"columns": {"t": "#2", "shoulder": "#7", "elbow": "#6"}, "units": {"t": "ns"}},
    ),
    "UR RTDE, record.csv": Foreign(
        "timestamp actual_q_0 actual_q_1 actual_qd_0 actual_qd_1\n12.0 0.0 -0.25 0 0\n12.1 0.5 0.125 0 0\n"
        "12.2 1.0 0.75 0 0\n12.3 0.875 1.5 0 0\n",
        keys={"columns": {"shoulder": "actual_q_0", "elbow": "actual_q_1"}},
    ),
    "ur_rtde, record.csv": Foreign(
        "timestamp,actual_q_0,actual_q_1\n12.0,0,-0.25\n12.1,0.5,0.125\n12.2,1,0.75\n12.3,0.875,1.5\n",
        keys={"columns": {"shoulder": "actual_q_0", "elbow": "actual_q_1"}},
    ),
    "KUKA, trace": Foreign(
        "Zeit [s];Istposition A1 [Grad];Istposition A2 [Grad]\r\n0,0;0,0;-15,0\r\n0,1;30,0;7,5\r\n0,2;60,0;45,0\r\n"
        "0,3;52,5;90,0\r\n",
        "cp1252",
        keys={
            "columns": {"shoulder": "Istposition A1 [Grad]", "elbow": "Istposition A2 [Grad]"},
            "units": {"shoulder": "deg", "elbow": "deg"},
        },
        numbers=DEGREES,
        factor=DEG,
    ),
    "ABB, signal log": Foreign(
        "Time (ms);J1 (deg);J2 (deg)\n0;0;-15\n100;30;7.5\n200;60;45\n300;52.5;90\n",
        keys={"columns": {"shoulder": "J1 (deg)", "elbow": "J2 (deg)"}},
        numbers=DEGREES,
        factor=DEG,
    ),
    "Fanuc, joint log in rows of a number": Foreign(
        "Tick,Time[ms],shoulder[deg],elbow[deg]\n1,0,0,-15\n2,100,30,7.5\n3,200,60,45\n4,300,52.5,90\n",
        numbers=DEGREES,
        factor=DEG,
    ),
    "Arduino, serial plotter with names": Foreign(
        "millis:0 shoulder:0.00 elbow:-0.25\nmillis:100 shoulder:0.50 elbow:0.125\nmillis:200 shoulder:1 elbow:0.75\n"
        "millis:300 shoulder:0.875 elbow:1.5\n",
        suffix=".txt",
    ),
    "Arduino, monitor": Foreign(
        "millis\tshoulder\telbow\r\n0\t0.00\t-0.25\r\n100\t0.50\t0.125\r\n200\t1.00\t0.75\r\n300\t0.875\t1.5\r\n",
        suffix=".log",
    ),
    "Tektronix": Foreign(
        "Model,MDO34\nFirmware Version,1.2\n\nHorizontal Units,s\nSample Interval,0.1\nRecord Length,4\n\nLabels,,\n"
        "TIME,CH1,CH2\n0.0,0.0,-0.25\n0.1,0.5,0.125\n0.2,1.0,0.75\n0.3,0.875,1.5\n",
        keys={"columns": {"shoulder": "CH1", "elbow": "CH2"}},
    ),
    "OpenModelica": Foreign(
        '"time","shoulder","elbow","der(shoulder)"\n0,0,-0.25,0\n0.1,0.5,0.125,0\n0.2,1,0.75,0\n0.3,0.875,1.5,0\n'
    ),
    "OpenModelica, events": Foreign(
        '"time","shoulder","elbow","der(elbow)"\n0,0,-0.25,3\n0.1,0.5,0.125,3\n0.1,0.5,0.125,4\n0.2,1,0.75,4\n'
        "0.3,0.875,1.5,4\n",
        noted=("left out 1 row equal to the row above",),
    ),
    "Dymola, names of components": Foreign(
        "time,robot.shoulder.phi,robot.elbow.phi\n0,0,-0.25\n0.1,0.5,0.125\n0.2,1,0.75\n0.3,0.875,1.5\n",
        keys={"columns": {"shoulder": "robot.shoulder.phi", "elbow": "robot.elbow.phi"}},
    ),
    "OpenSim, STO": Foreign(
        "Coordinates\nversion=1\nnRows=4\nnColumns=3\ninDegrees=yes\nendheader\ntime\tshoulder\telbow\n0\t0\t-15\n0.1\t30\t7.5\n"
        "0.2\t60\t45\n0.3\t52.5\t90\n",
        keys={"units": {"position": "deg"}},
        numbers=DEGREES,
        factor=DEG,
        suffix=".sto",
    ),
    "Markdown": Foreign(
        "| t | shoulder | elbow |\n|---|---|---|\n| 0 | 0 | -0.25 |\n| 0.1 | 0.5 | 0.125 |\n| 0.2 | 1 | 0.75 |\n"
        "| 0.3 | 0.875 | 1.5 |\n",
        suffix=".md",
    ),
    "gnuplot, aligned": Foreign(
        "#  t      shoulder   elbow\n   0.0    0.0       -0.25\n   0.1    0.5        0.125\n\n   0.2    1.0    0.75\n"
        "   0.3    0.875      1.5\n",
        suffix=".dat",
    ),
    "old Macintosh": Foreign("t,shoulder,elbow\r0,0,-0.25\r0.1,0.5,0.125\r0.2,1,0.75\r0.3,0.875,1.5\r"),
    "Fortran": Foreign(
        " t shoulder elbow\n 0.0D+00 0.0D+00 -0.25D+00\n 0.1D+00 0.5D+00 0.125D+00\n 0.2D+00 0.1D+01 0.75D+00\n"
        " 0.3D+00 0.875D+00 0.15D+01\n",
        suffix=".dat",
    ),
    "Windows performance, quoted all": Foreign(
        '"t","shoulder","elbow"\r\n"0","0","-0.25"\r\n"0.1","0.5","0.125"\r\n"0.2","1","0.75"\r\n"0.3","0.875","1.5"\r\n'
    ),
    "thin spaces and no-break spaces": Foreign(
        "t\u00a0;shoulder\u00a0;elbow\n0\u00a0;0\u00a0;-0,25\n0,1;0,5;0,125\n0,2;1;0,75\n0,3;0,875;1,5\n"
    ),
    "times in us since 1970": Foreign(
        "timestamp,shoulder,elbow\n1709633472000000,0,-0.25\n1709633472100000,0.5,0.125\n1709633472200000,1,0.75\n"
        "1709633472300000,0.875,1.5\n",
        noted=(f"times since 1970 in us, from 2024-03-05 10:11:12 UTC; {ZERO}",),
    ),
    "times in ms": Foreign("time_ms,shoulder,elbow\n0,0,-0.25\n100,0.5,0.125\n200,1,0.75\n300,0.875,1.5\n"),
    "clock times": Foreign(
        "time,shoulder,elbow\n10:11:12.0,0,-0.25\n10:11:12.1,0.5,0.125\n10:11:12.2,1,0.75\n10:11:12.3,0.875,1.5\n",
        noted=(f"times of the day, from 10:11:12.0; {ZERO}",),
    ),
    "columns by their numbers": Foreign(
        "time,value,value\n0,0,-0.25\n0.1,0.5,0.125\n0.2,1,0.75\n0.3,0.875,1.5\n",
        keys={"columns": {"shoulder": "#2", "elbow": "#3"}},
    ),
    "names of two lines": Foreign(
        't,"shoulder\n[deg]","elbow\n[deg]"\n0,0,-15\n0.1,30,7.5\n0.2,60,45\n0.3,52.5,90\n', numbers=DEGREES, factor=DEG
    ),
    "mixed units": Foreign(
        "t [ms],shoulder [mrad],elbow_deg\n0,0,-15\n100,30,7.5\n200,60,45\n300,52.5,90\n",
        numbers=DEGREES,
        factor=(1e-3, DEG),
    ),
    "minus signs of typography": Foreign(
        "t,shoulder,elbow\n0,0,\u22120.25\n0.1,0.5,0.125\n0.2,1,0.75\n0.3,0.875,1.5\n"
    ),
    "rosbags, positions by joint in ROS 2 style": Foreign(
        "header.stamp.sec,header.stamp.nanosec,name[0],name[1],position[0],position[1]\n"
        "1709633472,0,elbow,shoulder,-0.25,0\n1709633472,100000000,elbow,shoulder,0.125,0.5\n"
        "1709633472,200000000,elbow,shoulder,0.75,1\n1709633472,300000000,elbow,shoulder,1.5,0.875\n",
        noted=(f"times since 1970 in s, from 2024-03-05 10:11:12 UTC; {ZERO}",),
    ),
}

# tables with a fault, or of which nobody can know what they mean
REFUSED: dict[str, Foreign] = {
    "Rigol": Foreign(
        "X,CH1,CH2,Start,Increment,\nSequence,Volt,Volt,0.000000e+00,1.000000e-01\n0,0.00e+00,-2.50e-01,,\n"
        "1,5.00e-01,1.25e-01,,\n2,1.00e+00,7.50e-01,,\n3,8.75e-01,1.50e+00,,\n",
        keys={"columns": {"t": "X", "shoulder": "CH1", "elbow": "CH2"}},
    ),
    "Keysight": Foreign(
        "x-axis,1,2\nsecond,Volt,Volt\n+0.00E+00,+0.00E+00,-2.5E-01\n+1.00E-01,+5.00E-01,+1.25E-01\n"
        "+2.00E-01,+1.00E+00,+7.50E-01\n+3.00E-01,+8.75E-01,+1.50E+00\n",
        keys={"columns": {"t": "x-axis", "shoulder": "1", "elbow": "2"}},
    ),
    "thousands among decimal commas": Foreign("t;shoulder;elbow\n0;0;-0,25\n1,0;1.500;0,1\n2,0;1;0,75\n3,5;1;1,5\n"),
    "thousands of Excel": Foreign('t,shoulder,elbow\n0,0,-0.25\n1,"1,500",0.1\n2,1,0.75\n3,1,1.5\n'),
    "thousands with spaces": Foreign("t;shoulder;elbow\n0;0;0\n1;1 500;1\n2;1;2\n3;2;3\n"),
    "decimal commas, separated by commas": Foreign("t,shoulder,elbow\n0,0,0,0,-0,25\n0,1,0,5,0,125\n0,2,1,0,0,75\n"),
    "one decimal comma among points": Foreign("t;shoulder;elbow\n0.0;0.5;0.1\n0.1;0,5;0.2\n0.2;0.5;0.3\n"),
    "no names": Foreign("0,0,-0.25\n0.1,0.5,0.125\n0.2,1,0.75\n"),
    "a row of fewer cells": Foreign("t,shoulder,elbow\n0,0,-0.25\n0.1,0.5\n0.2,1,0.75\n0.3,1,1\n0.4,1,1\n"),
    "a row of more cells": Foreign("t,shoulder,elbow\n0,0,-0.25\n0.1,0.5,1,2\n0.2,1,0.75\n0.3,1,1\n0.4,1,1\n"),
    "the last row is cut": Foreign("t,shoulder,elbow\n0,0,-0.25\n0.1,0.5,1\n0.2,1,0.75\n0.3,1,1\n0.4,1"),
    "text among numbers": Foreign("t,shoulder,elbow\n0,0,-0.25\n0.1,off,1\n0.2,1,#VALUE!\n0.3,1,1\n"),
    "the first row is wrong": Foreign("t,shoulder,elbow\n0,error,error\n0.1,0.5,1\n0.2,1,0.75\n0.3,1,1\n"),
    "empty cells and infinities": Foreign("t,shoulder,elbow\n0,,1\n0.1,nan,1\n0.2,1,inf\n0.3,1,1\n"),
    "unsorted": Foreign("t,shoulder,elbow\n0,0,1\n0.2,0.5,1\n0.1,1,0.75\n0.3,1,1\n"),
    "two rows at one time": Foreign("t,shoulder,elbow\n0,0,1\n0.1,0.5,1\n0.1,1,0.75\n0.3,1,1\n"),
    "rows that are too close": Foreign("t,shoulder,elbow\n0,0,1\n0.1,0.5,1\n0.100000001,1,0.75\n0.3,1,1\n"),
    "times of ns as a float": Foreign(
        "timestamp,shoulder,elbow\n1.709633472e18,0,1\n1.709633472e18,0.5,1\n1.709633472e18,1,0.75\n"
    ),
    "one row": Foreign("t,shoulder,elbow\n0,0,1\n"),
    "no row": Foreign("t,shoulder,elbow\n"),
    "no times": Foreign("shoulder,elbow\n0,1\n0.5,1\n1,0.75\n"),
    "a joint without a column": Foreign("t,shoulder,elbw\n0,0,1\n0.1,0.5,1\n"),
    "columns by number": Foreign("timestamp actual_q_0 actual_q_1\n0 0 1\n0.1 0.5 1\n0.2 0.5 1\n"),
    "two columns of a joint": Foreign("t,shoulder,elbow_pos,elbow_angle\n0,0,1,2\n0.1,0.5,1,2\n"),
    "two columns of a name": Foreign("t,shoulder,elbow,elbow\n0,0,1,2\n0.1,0.5,1,2\n"),
    "a length for an angle": Foreign("t,shoulder [mm],elbow\n0,0,1\n0.1,0.5,1\n", keys={"units": {"elbow": "s"}}),
    "times in volts": Foreign("t [V],shoulder,elbow\n0,0,1\n0.1,0.5,1\n"),
    "a unit that is none": Foreign("t,shoulder,elbow\n0,0,1\n0.1,0.5,1\n", keys={"units": {"elbow": "degs"}}),
    "a unit of nothing": Foreign("t,shoulder,elbow\n0,0,1\n0.1,0.5,1\n", keys={"units": {"elbo": "deg"}}),
    "a column that is none": Foreign("t,shoulder,elbow\n0,0,1\n0.1,0.5,1\n", keys={"columns": {"elbow": "elbo"}}),
    "a column of no joint": Foreign("t,shoulder,elbow\n0,0,1\n0.1,0.5,1\n", keys={"columns": {"wrist": "elbow"}}),
    "a quantity that is none": Foreign(
        "t,shoulder,elbow\n0,0,1\n0.1,0.5,1\n", keys={"columns": {"elbow/positon": "elbow"}}
    ),
    "a number of no column": Foreign("t,shoulder,elbow\n0,0,1\n0.1,0.5,1\n", keys={"columns": {"elbow": "#4"}}),
    "a date of two orders": Foreign("time,shoulder,elbow\n05.03.2024 10:11:12,0,1\n05.03.2024 10:11:13,0.5,1\n"),
    "dates and numbers": Foreign("time,shoulder,elbow\n2024-03-05 10:11:12,0,1\n0.5,0.5,1\n"),
    "times of the day around midnight": Foreign("time,shoulder,elbow\n23:59:59.5,0,1\n00:00:00.5,0.5,1\n"),
    "comments alone": Foreign("# t,shoulder,elbow\n# 0,0,1\n"),
    "an empty file": Foreign(""),
    "empty lines": Foreign("\n\n \n"),
    "prose": Foreign("This is a report of the motion.\nNothing else.\n"),
    "zeros of a writing that was cut": Foreign("t,shoulder,elbow\n0,0,1\n0.1,0.5,1\n\0\0\0\0\0\0\0\0"),
    "a page": Foreign("<!DOCTYPE html>\n<html><body><h1>404</h1></body></html>\n"),
    "JSON": Foreign('{"t": [0, 0.1], "shoulder": [0, 1], "elbow": [0, 1]}\n', suffix=".json"),
    "JSON lines": Foreign('{"t": 0, "shoulder": 0, "elbow": 1}\n{"t": 0.1, "shoulder": 0.5, "elbow": 1}\n'),
    "YAML": Foreign("t: [0, 0.1]\nshoulder: [0, 1]\nelbow: [1, 2]\n", suffix=".yaml"),
    "numbers in hexadecimal": Foreign("t,shoulder,elbow\n0,0x10,1\n1,0x11,1\n2,0x12,1\n3,0x13,2\n"),
    "numbers of Arabic script": Foreign("t,shoulder,elbow\n0,\u0663,1\n1,\u0664,1\n2,1,1\n3,2,2\n"),
    "booleans": Foreign("t,shoulder,elbow\n0,true,1\n1,false,1\n2,true,1\n3,false,2\n"),
}
